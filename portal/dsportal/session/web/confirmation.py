"""Confirmation pages: a link from another site is asked about before it starts something.

A link on any page may lead into a session, and the browser sends the user's login along.
"""

from pathlib import Path

from jupyter_server.base.handlers import JupyterHandler
from tornado.httputil import HTTPServerRequest

from dsportal.addresses import parts_of
from dsportal.session.web.page_files import page_of

_PAGE = Path(__file__).with_name("confirmation.html.j2")
_BY_THE_USER = ("same-origin", "none")
"""A link on the session's own pages; an address that was typed, or a bookmark (Fetch Metadata)."""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def is_visit(request: HTTPServerRequest) -> bool:
    """Say whether somebody opens a page: what a page asks for by itself is none."""
    if request.method != "GET":
        return False
    # Browsers say it, but not where the portal has no TLS.
    mode = request.headers.get("Sec-Fetch-Mode")
    if mode is not None:
        return mode == "navigate"
    return "text/html" in request.headers.get("Accept", "")


def is_from_elsewhere(handler: JupyterHandler) -> bool:
    """Say whether another page's link, and not the user or a program of theirs, asks for this."""
    site = handler.request.headers.get("Sec-Fetch-Site")
    if site == "same-origin" and "Referer" in handler.request.headers:
        # With one host name for all, the hub's login is of this origin, too, and leads on to
        # wherever a link has said.
        return not is_from_below(handler.request, handler.base_url)
    if site is not None:
        return site not in _BY_THE_USER
    # Set by JupyterHub's login: a token came with the request, which no other page knows.
    if getattr(handler, "_token_authenticated", False):
        return False
    return not is_from_below(handler.request, handler.base_url)


def is_from_below(request: HTTPServerRequest, base_url: str) -> bool:
    """Say whether a page below a path of this host asks, as far as the request tells.

    All sessions of a host are one origin to a browser, so it is the page's path that tells.
    """
    page = parts_of(request.headers.get("Referer", ""))
    host = parts_of(f"//{request.host}").hostname
    return host is not None and page.hostname == host and page.path.startswith(base_url)


def ask(handler: JupyterHandler, *, title: str, label: str, action: str) -> None:
    """Answer with a button that posts to ``action``, with what no other page knows."""
    handler.set_header("Content-Security-Policy", _POLICY)
    handler.set_header("Cache-Control", "no-store")
    token = handler.xsrf_token.decode()
    page = page_of(_PAGE)
    handler.finish(page.render(title=title, label=label, action=action, xsrf_token=token))
