"""The hook of jupyterhub-idle-culler, and the culler itself, beside a hub that listens."""

import asyncio
import json
import logging
from typing import Any

import pytest
from jupyterhub_idle_culler import cull_idle
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from dsportal.culler.__main__ import configuration
from dsportal.culler.decision import CullDecision, is_marked, path_of
from dsportal.settings.hub import HubSettings as HubTable

LONG_AGO = "2020-01-01T00:00:00Z"


def server(full_name: str, state: object) -> dict[str, Any]:
    return {
        "name": full_name.partition("/")[2],
        "full_name": full_name,
        "state": state,
        "ready": True,
        "pending": None,
        "url": f"/user/{full_name}/",
        "started": LONG_AGO,
        "last_activity": LONG_AGO,
    }


@pytest.mark.parametrize(
    ("state", "marked"),
    [
        ({"is_unused": True}, True),
        ({"is_unused": "yes"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_only_the_hubs_mark_counts(state: object, marked: bool) -> None:
    assert is_marked({"state": state}) is marked


@pytest.mark.parametrize(
    ("full_name", "path"),
    [
        ("ada/", "/gpu-session/unused/ada/"),
        ("ada/big one", "/gpu-session/unused/ada/big%20one"),
        ("a@b/c/d", "/gpu-session/unused/a%40b/c%2Fd"),
    ],
)
def test_names_stay_in_their_place(full_name: str, path: str) -> None:
    assert path_of({"full_name": full_name}) == path


def test_the_culler_ends_what_the_hub_lets_it_end() -> None:
    users = [
        {"name": "ada", "servers": {"": server("ada/", {"is_unused": True})}},
        # Came back, as the hub knows when it is asked.
        {"name": "bob", "servers": {"": server("bob/", {"is_unused": True})}},
        # As unused as can be, for JupyterHub.
        {"name": "eve", "servers": {"": server("eve/", {})}},
        # The hub fails for this one; the others' turn comes all the same.
        {"name": "aaa", "servers": {"": server("aaa/", {"is_unused": True})}},
    ]
    done: list[tuple[str | None, str]] = []

    class Hub(RequestHandler):
        def prepare(self) -> None:
            path = self.request.path.removeprefix("/hub/api")
            done.append((self.request.method, path))
            if "aaa" in path:
                self.set_status(500)
                self.finish()
            elif path == "/":
                self.finish({"version": "6.1.1"})
            elif path == "/users":
                self.finish({"items": users, "_pagination": {"next": None}})
            elif "unused" in path:
                self.finish(json.dumps({"end": "ada" in path}))
            else:
                self.set_status(204)
                self.finish()

    async def run() -> None:
        listening = HTTPServer(Application([(r"/.*", Hub)]))
        sockets = bind_sockets(0, "127.0.0.1")
        listening.add_sockets(sockets)
        url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/hub/api"
        decision = CullDecision(url, "secret", HubTable())
        log = logging.getLogger("culler")
        log.disabled = True
        await cull_idle(url, "secret", 600, log, cull_arbiter=decision.decide)
        listening.stop()
        await listening.close_all_connections()

    asyncio.run(run())
    assert [path for method, path in done if method == "DELETE"] == ["/users/ada/server"]
    assert ("POST", "/gpu-session/unused/eve/") not in done


def test_the_culler_reads_no_file_of_the_folder_that_it_runs_in() -> None:
    config = configuration(
        30, CullDecision("http://127.0.0.1:1/hub/api", "secret", HubTable()), HubTable()
    )
    assert config.IdleCuller.config_file == ""
    assert config.IdleCuller.cull_every == 30
