"""Size limits of request bodies: whose requests may have one, and how long.

Jupyter and jupyter-server-proxy take a body in one piece, and Jupyter's contents are JSON, so that
no body can be written to the disk as it comes. JupyterLab uploads in pieces of 1 MiB; a notebook is
saved in one piece, whatever its outputs are.
"""

from collections.abc import Callable
from typing import Any

from jupyter_server.utils import url_path_join
from tornado.httputil import HTTPServerRequest

from dsportal.request_limits import SMALL_BODY, Rules, is_login, welcome
from dsportal.session.usage.memory import JobMemory

_LONG = ("api/contents/", "tools/")
"""Below the server's base URL: files, and what web tools are sent."""
_SHARE_OF_MEMORY = 8
"""What is in a body of JSON is in memory several times while it is read."""


def rules(server: Any) -> Rules:
    """Give those of a session's server."""
    places = tuple(url_path_join(server.base_url, path) for path in _LONG)
    longest = longest_body(server.max_body_size, JobMemory.of_this_process())

    async def knows(request: HTTPServerRequest) -> bool:
        return await is_login(server.identity_provider.hub_auth, server.web_app, request)

    def body_bytes(request: HTTPServerRequest) -> int:
        return longest if request.path.startswith(places) else SMALL_BODY

    return Rules(knows, body_bytes)


def longest_body(most: int, memory: JobMemory) -> int:
    """Return how many bytes may be sent at once: ``most``, or less where memory is short."""
    limit_gib = memory.limit_gib()
    if limit_gib is None:
        return most
    return min(most, max(SMALL_BODY, int(limit_gib * 2**30) // _SHARE_OF_MEMORY))


def watch(login: Any, note: Callable[[str], None]) -> None:
    """Hear from the server's login whom it lets in; ``note`` is told of each."""
    ask = login.get_user

    async def get_user(handler: Any) -> Any:
        user = await ask(handler)
        if user is not None:
            welcome()
            note(user.username)
        return user

    login.get_user = get_user
