"""Response headers of hub, services and sessions; HEAD is answered as GET."""

from typing import Any

from tornado.httputil import HTTPHeaders
from tornado.web import OutputTransform, RequestHandler

NAME = "portal"
"""What stands in ``Server`` in the place of a program with its version."""
FROM_ANOTHER_PAGE = "This request comes from another page."
"""Why the hub, and a session, refuse a request."""


class Unversioned(OutputTransform):
    """Takes Tornado's version out of an answer, whichever handler makes it."""

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Name the portal instead; also for what an application hands on."""
        headers["Server"] = NAME
        headers.pop("X-Powered-By", None)
        return status_code, headers, chunk


def head_as_get(handler: RequestHandler, *arguments: str, **named: str) -> Any:
    """Answer HEAD as RFC 9110, section 9.3.2, has it; Tornado leaves out the content."""
    return handler.get(*arguments, **named)
