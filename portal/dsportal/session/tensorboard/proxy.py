"""The proxy to the session's TensorBoards, over jupyter-server-proxy.

It is slow to import: this module is loaded after the server listens.
"""

from typing import Any
from urllib.parse import quote

from jupyter_server.utils import url_path_join
from jupyter_server_proxy.handlers import LocalProxyHandler

from dsportal.session.tensorboard import words
from dsportal.session.tensorboard.boards import BoardError
from dsportal.session.tensorboard.log_folders import FolderError
from dsportal.session.tensorboard.routes import NAME, TensorBoards, finish_with_words
from dsportal.session.web.confirmation import is_from_elsewhere, is_visit
from dsportal.session.web.proxied import guarded


class BoardProxy(guarded(LocalProxyHandler)):  # type: ignore[misc]
    """Proxy to a board's pages and data; its base class requires the login."""

    def initialize(self, tensorboards: TensorBoards) -> None:
        """Take the session's boards."""
        self._tensorboards = tensorboards
        self.absolute_url = True
        self.rewrite_response = _with_frames_of_ours

    async def proxy(self, board_id: str, path: str) -> None:
        """Hand a request on. The first argument is a port where this comes from."""
        try:
            if path == "/":
                await self._tensorboards.check(board_id)
            if self._is_to_be_asked(board_id):
                return None
            board = await self._tensorboards.boards.use(board_id)
        except FolderError as error:
            return finish_with_words(self, 404, title=words.FOLDER_GONE, text=str(error))
        except BoardError as error:
            return finish_with_words(self, 503, title=words.ASLEEP, text=str(error))
        if board is None:
            return self._say_that_it_is_stopped()
        self.unix_socket = str(board.socket)
        self.proxy_base = f"{NAME}/{board.id}"
        await super().proxy(0, path)

    def _is_to_be_asked(self, board_id: str) -> bool:
        """Ask before one that sleeps is woken by another page's link; say whether that is so."""
        board = self._tensorboards.boards.find(board_id)
        says = is_visit(self.request) or "Sec-Fetch-Site" in self.request.headers
        if board is None or board.is_awake or not says or not is_from_elsewhere(self):
            return False
        opening = url_path_join(self.base_url, NAME)
        self.redirect(f"{opening}/?folder={quote(board.name)}")
        return True

    def _say_that_it_is_stopped(self) -> None:
        finish_with_words(self, 404, title=words.STOPPED, text=words.STOPPED_BECAUSE)

    async def open(self, board_id: str, path: str) -> None:
        """Refuse: TensorBoard has no websockets."""
        self.close()


def _with_frames_of_ours(response: Any) -> None:
    """Let no other site show TensorBoard in a frame; of its own it would (tensorboard 2.21)."""
    policy = response.headers.get("Content-Security-Policy")
    if policy:
        response.headers["Content-Security-Policy"] = f"{policy};frame-ancestors 'self'"


def add_routes(web_app: Any, tensorboards: TensorBoards) -> None:
    """Give a running server the routes of the boards."""
    pattern = url_path_join(web_app.settings["base_url"], NAME, "([0-9a-f]{12})(/.*)")
    web_app.add_handlers(".*", [(pattern, BoardProxy, {"tensorboards": tensorboards})])
