"""Rendering of the cluster page: whole for a browser that has just come, then in parts."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dsportal.cluster.sessions import SessionList
from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.usage import DAYS
from dsportal.cluster.view import JobRow, NodeRow, Viewer
from dsportal.look import WEB, Appearance
from dsportal.sizing import words
from dsportal.sizing.answer import SizingAnswer
from dsportal.sizing.question import FIELDS, MEASURED, Question

_FOLDER = Path(__file__).parent / "page"
FILES = {name: _FOLDER / name for name in ("page.css", "page.js")}
"""What the page loads, by its name below the service's address."""
_MOST_ROWS = 200


class Pages:
    """Writes the page in the portal's look; ``hub_url`` is where the hub's own pages are."""

    def __init__(self, hub_url: str, look: Appearance) -> None:
        environment = Environment(
            loader=FileSystemLoader([_FOLDER, WEB]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals |= {"hub_url": hub_url, "look": look, "links": self._links}
        environment.filters |= {"moment": _moment, "iso": _iso, "memory": _memory, "span": _span}
        self._page = environment.get_template("page.html.j2")
        self._error = environment.get_template("error.html.j2")
        self._sizing = environment.get_template("sizing.html.j2")
        self._hub_url = hub_url
        self._parts: Any = environment.get_template("live.html.j2").module

    def page(
        self,
        shared: SharedView,
        viewer: Viewer,
        *,
        sessions: SessionList | None,
        **about: object,
    ) -> str:
        """Write the whole page.

        ``sessions`` are for an admin; ``about`` is who looks, and what the page's script needs.
        """
        return self._page.render(
            as_of=shared.snapshot.as_of.timestamp(),
            parts=self.parts(shared, viewer),
            partitions=shared.partitions,
            nodes=shared.nodes(viewer),
            sessions=None if sessions is None else self.sessions(sessions),
            spans=DAYS,
            **about,
        )

    def error(self, status: int, message: str) -> str:
        """Write a page that says what is wrong."""
        return self._error.render(status=status, message=message)

    def sizing(
        self,
        given: Mapping[str, str],
        faults: Mapping[str, str],
        sized: tuple[Question, SizingAnswer] | None,
        **about: object,
    ) -> str:
        """Write the page on sizing: the form as it was filled in, and the answer or the faults."""
        return self._sizing.render(
            fields=FIELDS,
            measured=MEASURED,
            given={name: given.get(name, field.default) for name, field in FIELDS.items()},
            faults=faults,
            rows=words.rows(*sized) if sized else [],
            title=words.title(sized[0]) if sized else "",
            advice=words.ADVICE,
            left_out=words.LEFT_OUT,
            papers=words.PAPERS,
            **about,
        )

    def _links(self, is_admin: bool) -> list[tuple[str, str]]:
        """Return what the bar leads to."""
        hub = {"home": "Home", "token": "Tokens", "admin": "Admin"}
        (home, tokens, admin) = [(f"{self._hub_url}{path}", word) for path, word in hub.items()]
        pages = [home, ("./", "Cluster"), tokens]
        return [*pages, ("sizing", "Storage sizing"), admin] if is_admin else pages

    def parts(self, shared: SharedView, viewer: Viewer) -> Mapping[str, str]:
        """Write what changes on the page, by the ids of the elements that it is in."""
        seen = shared.as_seen_by(viewer)
        return shared.once(("parts", seen), lambda: self._all_parts(shared, seen))

    def sessions(self, told: SessionList) -> str:
        """Write the admins' table of sessions."""
        return self._write("sessions", told.rows, told.trouble)

    def _all_parts(self, shared: SharedView, viewer: Viewer) -> Mapping[str, str]:
        jobs, nodes = shared.jobs(viewer), shared.nodes(viewer)
        running = [job for job in jobs if job["started"] is not None]
        waiting = [job for job in jobs if job["started"] is None]
        mine = [job for job in jobs if job["is_mine"]]
        kinds = ("hidden",) * 3 if shared.hides_jobs else ("mine", "waiting", "running")
        facts = (shared.gpus, _mine(nodes), len(running), len(waiting))
        return {
            # A page with other nodes, or with nodes in other partitions, is loaded anew.
            "layout": " ".join(",".join((row["name"], *row["partitions"])) for row in nodes),
            "trouble": self._write("trouble", shared.jobs_trouble),
            "summary": self._write("summary", *facts),
            "partitions": self._write("partitions", shared.partitions),
            "mine": self._jobs(mine, kinds[0]),
            "waiting": self._jobs(waiting, kinds[1]),
            "running": self._jobs(running, kinds[2]),
            **{f"node-{row['name']}": self._node(shared, row) for row in nodes},
        }

    def _jobs(self, rows: list[JobRow], kind: str) -> str:
        """Write a table of jobs; all of somebody's 10,000 would keep everybody waiting."""
        return self._write("jobs", rows[:_MOST_ROWS], len(rows), kind)

    def _node(self, shared: SharedView, row: NodeRow) -> str:
        # A row is the same object for all who see the same of its node.
        return shared.once(("html", id(row)), lambda: self._write("node", row, holders(row)))

    def _write(self, part: str, *given: object) -> str:
        """Write a part without its template's indentation, which each stream would carry."""
        return " ".join(str(getattr(self._parts, part)(*given)).split())


def holders(row: NodeRow) -> list[dict[str, object]]:
    """Say who holds which GPUs of a node, as far as the viewer may know."""
    found: dict[tuple[bool, str | None, int | None], list[int]] = {}
    for gpu in row["gpus"]:
        if gpu["state"] in ("mine", "others") and gpu["job_id"] is not None:
            key = (gpu["state"] == "mine", gpu["user"], gpu["job_id"])
            found.setdefault(key, []).append(gpu["index"])
    return [
        {"is_mine": is_mine, "user": user, "job_id": job_id, "gpus": gpus}
        for (is_mine, user, job_id), gpus in found.items()
    ]


def _mine(nodes: list[NodeRow]) -> int:
    return sum(gpu["state"] == "mine" for node in nodes for gpu in node["gpus"])


def _moment(seconds: float) -> str:
    """Write a moment for who has no script; the page's script puts it into the local time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%d %b %H:%M UTC")


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _memory(megabytes: int) -> str:
    return f"{megabytes / 1024:.0f}"


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"
