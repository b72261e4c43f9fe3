"""A measurement and what it was made with: one JSON a run, whose parts are kept as they come.

The folder of a run holds progress.jsonl, a line for each part as it is measured, and at the end
summary.json, which schema.json describes. A run that was interrupted goes on with the part that is
missing.
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1

Values = Mapping[str, Any]


class ResultError(ValueError):
    """A folder cannot take this run; the message says why and what to do."""


class NewerResultError(ValueError):
    """A result was written by newer programs; the message says what to do."""


class Result:
    """A run's folder."""

    def __init__(
        self, folder: Path, benchmark: str, configuration: Values, parts: int, device: str = ""
    ) -> None:
        """Begin, or go on where a run with the same configuration stopped.

        ``parts``: how many there are to measure, for those who watch. ``device``: what computes,
        where figures of several kinds must not be put together.
        Raises `ResultError` where the folder holds a run with another configuration or device, or
        one that cannot be read.
        """
        self.folder, self._benchmark, self._parts = folder, benchmark, parts
        self._device = device
        self._configuration = json.loads(json.dumps(configuration))
        self._progress = folder / "progress.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = self._read()

    def part(self, name: str, measure: Callable[[], Values]) -> dict[str, Any]:
        """Return the values of a part: those kept from before, or measured now and kept.

        Among them are ``times``, its begin and end in seconds since 1970.
        """
        if name not in self._kept:
            began = time.time()
            values = dict(measure())
            values.setdefault("times", [round(began, 3), round(time.time(), 3)])
            self._kept[name] = values
            self._add({"part": name, "values": values, "number": len(self._kept)})
            print(f"{len(self._kept)} of {self._parts}: {name}: {words(values)}", flush=True)
        return self._kept[name]

    def forget(self) -> None:
        """Leave out what is kept from before: all parts are had anew."""
        self._kept = {}
        self._begin()

    def finish(
        self,
        hosts: Sequence[Values],
        versions: Values,
        figures: Values,
        samples: Mapping[str, Sequence[Values]] | None = None,
        nas: Sequence[Values] = (),
    ) -> dict[str, Any]:
        """Write summary.json, by which others know that the run came to its end.

        ``figures``: what follows from the parts; ``samples``: how busy each node was (`sampling`);
        ``nas``: what the NAS did meanwhile, where it was asked.
        """
        summary = {
            "schema": SCHEMA_VERSION,
            "benchmark": self._benchmark,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": shlex.join(sys.argv),
            "configuration": self._configuration,
            "hosts": list(hosts),
            "versions": dict(versions),
            "parts": [{"name": name, **values} for name, values in self._kept.items()],
            "figures": dict(figures),
            "samples": {node: list(lines) for node, lines in (samples or {}).items()},
            **({"nas": list(nas)} if nas else {}),
        }
        self._write(self.folder / "summary.json", json.dumps(summary, indent=1) + "\n")
        return summary

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            lines = complete_lines(self._progress.read_text())
        except FileNotFoundError:
            lines = []
        except OSError as error:
            # As while a file server is away: what was measured stays.
            raise ResultError(
                f"{self._progress} cannot be read ({error.strerror}): try again later"
            ) from error
        if not lines:
            self._begin()
            return {}
        first = lines[0]
        if first.get("benchmark") != self._benchmark:
            raise ResultError(f"{self.folder} holds a run of {first.get('benchmark')!r}")
        device = first.get("device") or self._device
        if self._device and device != self._device:
            raise ResultError(
                f"{self.folder} holds a run on {device}, and this is {self._device}: "
                "use another folder, or continue on the same hardware"
            )
        before = first["configuration"]
        for name in sorted({*before, *self._configuration}):
            was, now = before.get(name), self._configuration.get(name)
            # An option that came with an upgrade, and was left empty, asks for nothing new.
            is_new = name not in before and not now
            if was != now and not is_new:
                raise ResultError(
                    f"{self.folder} holds a run with {name} = {was!r}, not {now!r}: "
                    "use another folder, or the same settings to continue"
                )
        # What was being written when the run was ended is measured again.
        self._write(self._progress, "".join(json.dumps(line) + "\n" for line in lines))
        return {line["part"]: line["values"] for line in lines if "part" in line}

    def _begin(self) -> None:
        self._write(self._progress, "")
        told = {"benchmark": self._benchmark, "configuration": self._configuration}
        self._add({**told, **({"device": self._device} if self._device else {})})

    def _write(self, file: Path, text: str) -> None:
        # On a full disk the file from before stays.
        building = file.with_name(f".{file.name}.{os.getpid()}")
        building.write_text(text)
        building.replace(file)

    def _add(self, line: Values) -> None:
        with self._progress.open("a") as file:
            file.write(json.dumps({"time": round(time.time(), 3), "parts": self._parts, **line}))
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Read a file's `complete_lines`; none where it cannot be read."""
    try:
        return complete_lines(file.read_text(errors="replace"))
    except OSError:
        return []


def complete_lines(text: str) -> list[dict[str, Any]]:
    """Read the lines that were written to their end.

    One that was cut short, as on a full disk, and what was added to it later are left out, and so
    is what is no JSON object, as a program of the user's may write.
    """
    found = []
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            with suppress(ValueError):
                found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict)]


def summaries(base: Path, benchmark: str) -> list[dict[str, Any]]:
    """Read the finished runs of a benchmark below a folder, oldest first.

    Raises:
        NewerResultError: one was written by newer programs.

    """
    found = {path: json.loads(path.read_text()) for path in base.glob("**/summary.json")}
    ours = {path: one for path, one in found.items() if one.get("benchmark") == benchmark}
    for path, one in ours.items():
        if one.get("schema", SCHEMA_VERSION) > SCHEMA_VERSION:
            raise NewerResultError(
                f"{path} has schema {one['schema']}, and these programs read up to "
                f"{SCHEMA_VERSION}: open a new copy of the template"
            )
    return sorted(ours.values(), key=lambda one: str(one["date"]))


def words(values: Values) -> str:
    """Say the figures of a part in one line; what they are of is in its name."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value:,.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in values.items()
        if isinstance(value, int | float)
    )
