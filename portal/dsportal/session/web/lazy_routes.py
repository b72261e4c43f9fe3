"""Lazy routes, whose modules are too slow to import before the server listens.

Until they are there, a request for one of them waits, and is then sent to the same
address again.
"""

import asyncio
import importlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado.httputil import HTTPServerRequest
from tornado.routing import PathMatches, Rule

log = logging.getLogger(__name__)

_WAIT_SECONDS = 30.0


class DeferredRoutes:
    """Routes that are added to the running server."""

    def __init__(
        self, patterns: Sequence[str], modules: Sequence[str], add: Callable[[], None]
    ) -> None:
        """``add`` adds the routes; ``modules`` are imported before, beside the server's work."""
        self._patterns = patterns
        self._modules = modules
        self._add = add
        self._loaded = asyncio.Event()

    def placeholders(self, base_url: str) -> list[Rule]:
        """Give what answers until the routes are there."""
        return [
            Rule(
                _UntilLoaded(url_path_join(base_url, pattern), self._loaded),
                _WaitHandler,
                {"loaded": self._loaded},
            )
            for pattern in self._patterns
        ]

    async def load(self) -> None:
        """Import in a thread, add the routes, let those who wait go on."""
        try:
            for module in self._modules:
                await asyncio.to_thread(importlib.import_module, module)
            self._add()
        except Exception:  # one tool less; the session goes on
            log.exception("Not available in this session: %s", ", ".join(self._patterns))
        self._loaded.set()


class _UntilLoaded(PathMatches):
    def __init__(self, pattern: str, loaded: asyncio.Event) -> None:
        super().__init__(pattern)
        self._loaded = loaded

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        return None if self._loaded.is_set() else super().match(request)


class _WaitHandler(JupyterHandler):
    def initialize(self, loaded: asyncio.Event) -> None:
        self._loaded = loaded

    # The routes themselves ask for the login; here is nothing to protect.
    @allow_unauthenticated
    async def get(self) -> None:
        await asyncio.wait_for(self._loaded.wait(), _WAIT_SECONDS)
        # The same request again, with its method and its body.
        self.redirect(self.request.uri or self.base_url, status=307)

    post = put = patch = delete = get
