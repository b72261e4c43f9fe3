"""A stand-in for the cluster's service: it answers as it is told, and counts."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

NODES: list[dict[str, Any]] = [
    {
        "name": f"node00{number}",
        "partitions": ["all", "sxm2"] if number < 3 else ["all"],
        "gpus": [
            {"index": 0, "type": "v100", "state": "free", "user": None, "job_id": None},
            {"index": 1, "type": "v100", "state": "others", "user": None, "job_id": None},
            {"index": 2, "type": "a100", "state": "down", "user": None, "job_id": None},
        ],
    }
    for number in (1, 2, 3)
]

CLUSTER = {"nodes": NODES, "partitions": [{"name": "all", "is_default": True}]}


def job(job_id: str, state: str = "RUNNING", **about: object) -> dict[str, Any]:
    """Return a job as the service tells it."""
    nothing = dict.fromkeys(("name", "reason", "partition", "submitted", "started"))
    more = dict.fromkeys(("expected_start", "ends"))
    known = {"is_mine": True, "is_session": False, "gpus": 1, "nodes": ["node001"]}
    return {"id": job_id, "state": state, **nothing, **more, **known, **about}


class StandIn:
    """The service; ``jobs`` is what it says next, ``None`` for nothing of use."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.jobs: list[dict[str, Any]] | None = list(jobs)
        self.as_of = 1000.0
        self.requests: Counter[str] = Counter()
        self.tokens: set[str] = set()
        self.url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["StandIn"]:
        """Listen on a free port as long as the context lasts."""
        service = self

        class Handler(RequestHandler):
            def get(self, what: str) -> None:
                service.requests[what] += 1
                service.tokens.add(self.request.headers["Authorization"])
                if service.jobs is None:
                    self.redirect("/hub/login")
                elif what == "jobs":
                    self.finish(json.dumps({"as_of": service.as_of, "jobs": service.jobs}))
                else:
                    self.finish(json.dumps({**CLUSTER, "as_of": service.as_of}))

        server = HTTPServer(Application([("/services/cluster/api/v1/(.*)", Handler)]))
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.stop()
            await server.close_all_connections()
