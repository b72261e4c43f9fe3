"""A database that is away for a while: what the hub does then, and what its pages say.

JupyterHub works with one connection for days. A request that finds it dead would take its user for
a stranger, and show the login page to somebody who is logged in. So each request asks for the
connection first: after a restart of the database it goes on with a new one, and while there is none
everybody is told so.
"""

from functools import wraps

from jupyterhub.handlers.base import BaseHandler
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from tornado import web

TITLE = "The database does not answer"
WORDS = (
    "Sessions that run go on, with all that is in them. "
    "Try again in a moment; if it stays like this, tell the people who run the portal."
)


def install() -> None:
    """Let every handler of the hub look for the database before anything else, once."""
    prepare = BaseHandler.prepare
    if hasattr(prepare, "__wrapped__"):
        return

    @wraps(prepare)
    async def look_first(self: BaseHandler) -> None:
        try:
            ensure_connection(self.db)
        except DBAPIError as error:
            # The error's page is the same for all readers, and leaves the cookies as they are.
            self._jupyterhub_user, self.expanded_scopes, self.parsed_scopes = None, set(), {}
            self._xsrf_token = b""
            self.log.error("The database does not answer: %s", error.orig)
            raise web.HTTPError(503, WORDS, reason=TITLE) from error
        await prepare(self)

    BaseHandler.prepare = look_first


def ensure_connection(session: Session) -> None:
    """Ask the database for nothing; raise when it does not answer on a new connection either."""
    try:
        session.execute(select(1))
    except DBAPIError:
        session.rollback()
        session.execute(select(1))
