"""The route ``/hub/portal/look.css``: the style sheet of all pages."""

from jupyterhub.handlers import default_handlers
from tornado import web

from dsportal.hub import handlers

PATH = "/portal/look.css"
"""Below the hub's own address."""


class StylesheetHandler(web.RequestHandler):
    """Gives the sheet to everybody: the login page needs it."""

    def initialize(self, stylesheet: str, version: str) -> None:
        """Take what is served."""
        self.stylesheet, self.version = stylesheet, version

    def get(self) -> None:
        """Give it; for good where the address names this version of it."""
        self.set_header("Content-Type", "text/css; charset=utf-8")
        is_this = self.get_query_argument("v", "") == self.version
        kept = "public, max-age=31536000, immutable" if is_this else "no-cache"
        self.set_header("Cache-Control", kept)
        self.finish(self.stylesheet)


def install(stylesheet: str, version: str) -> None:
    """Put the sheet among the hub's pages."""
    given = {"stylesheet": stylesheet, "version": version}
    handlers.add(default_handlers, PATH, StylesheetHandler, given)
