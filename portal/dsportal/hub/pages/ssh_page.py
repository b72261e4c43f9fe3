"""The page on how to connect to a session with SSH, and the program that does it.

``GET /hub/portal/ssh?server=NAME`` is the page; its button asks JupyterHub for a token that opens
this session of the user's and nothing else. ``GET /hub/portal/portal_ssh.py`` is the program.

Tried with JupyterHub 6.1.1.
"""

from urllib.parse import urljoin

from jupyterhub.handlers import BaseHandler, default_handlers
from tornado import web

from dsportal.hub import handlers
from dsportal.hub.pages import own_sessions
from dsportal.look import WEB

PAGE_PATH = "/portal/ssh"
"""Below the hub's own address, as is the next."""
PROGRAM_PATH = "/portal/portal_ssh.py"

_DAY = 86_400
_USUAL_DAYS = (1, 7, 30)


def token_days(longest_seconds: int) -> tuple[int, ...]:
    """Return for how many days a token may be asked for; 0 seconds are no limit.

    >>> token_days(10 * 86_400)
    (1, 7)
    """
    return tuple(
        days for days in _USUAL_DAYS if not longest_seconds or days * _DAY <= longest_seconds
    )


class SshPageHandler(BaseHandler):  # type: ignore[misc]  # JupyterHub has no types
    """GET handler of the page on SSH."""

    @web.authenticated
    async def get(self) -> None:
        """Show it for one of the user's sessions."""
        user, name = self.current_user, self.get_argument("server", "")
        spawner = own_sessions.find(user, name)
        if spawner is None:
            raise web.HTTPError(404, "There is no session of this name.")
        address = urljoin(self.request.full_url(), user.server_url(name))
        page = await self.render_template(
            "ssh.html",
            address=address,
            # Of ssh_config(5): what stands for the session.
            alias=f"portal-{name}" if name else "portal",
            session_name=name,
            is_running=spawner.ready,
            token_days=token_days(self.settings["token_expires_in_max_seconds"]),
        )
        self.finish(page)


class SshProgramHandler(BaseHandler):  # type: ignore[misc]
    """GET handler that downloads the SSH client program."""

    @web.authenticated
    async def get(self) -> None:
        """Give it as a file to be kept."""
        self.set_header("Content-Type", "text/x-python; charset=utf-8")
        self.set_header("Content-Disposition", "attachment; filename=portal_ssh.py")
        self.finish((WEB / "portal_ssh.py").read_bytes())


def install(*, is_offered: bool) -> None:
    """Put both into the hub, or take them out."""
    handlers.remove(default_handlers, SshPageHandler, SshProgramHandler)
    if is_offered:
        handlers.add(default_handlers, PAGE_PATH, SshPageHandler)
        handlers.add(default_handlers, PROGRAM_PATH, SshProgramHandler)
