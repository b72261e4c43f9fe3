"""The route ``/hub/portal/docs/``: the documentation as a site, for everybody.

It needs no login: who cannot log in is one of those who look for help. The site's files are made
by the deployment; its own scripts (the search runs in one) are all that its pages may load.
"""

from pathlib import Path

from jupyterhub.handlers import default_handlers
from tornado import web

from dsportal.hub import handlers
from dsportal.look import DOCUMENTATION

# The pages' own beginnings are scripts in them, and the search is a worker.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'none'; form-action 'self'; "
    "base-uri 'self'"
)


class DocumentationHandler(web.StaticFileHandler):
    """Gives a page or a picture of the site."""

    def set_extra_headers(self, path: str) -> None:
        """Let a browser ask whether what it has kept is still the same."""
        self.set_header("Cache-Control", "no-cache")
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")


def install(folder: str) -> None:
    """Put the site among the hub's pages; without a folder there is none."""
    handlers.remove(default_handlers, DocumentationHandler)
    if folder:
        given = {"path": str(Path(folder)), "default_filename": "index.html"}
        handlers.add(default_handlers, f"/{DOCUMENTATION}(.*)", DocumentationHandler, given)
