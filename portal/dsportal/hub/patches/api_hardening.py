"""Hardening of the hub's API: where it is stricter than JupyterHub's, or closed.

Whatever is sent, the answer is the sender's fault (4xx) and not a fault of the hub's (5xx), which
would wake somebody up.

Tried with JupyterHub 6.1.1 and Tornado 6.6.1.
"""

import asyncio
import json
from typing import Any

from jupyterhub import orm
from jupyterhub.apihandlers import APIHandler, default_handlers
from jupyterhub.apihandlers.auth import CookieAPIHandler, OAuthTokenHandler, TokenAPIHandler
from jupyterhub.apihandlers.groups import GroupPropertiesAPIHandler
from jupyterhub.apihandlers.users import (
    ActivityAPIHandler,
    UserAPIHandler,
    UserServerAPIHandler,
    UserTokenListAPIHandler,
)
from jupyterhub.handlers import default_handlers as page_handlers
from jupyterhub.handlers.base import BaseHandler
from jupyterhub.handlers.pages import ProxyErrorHandler
from jupyterhub.scopes import needs_scope
from jupyterhub.slugs import is_valid_display_name, normalise_unicode
from jupyterhub.utils import utcnow
from sqlalchemy import or_
from tornado import web

from dsportal import request_limits
from dsportal.hub import handlers, starts
from dsportal.response_headers import head_as_get

LARGEST_BODY = 2**20
"""Bytes; Tornado would keep a hundred times as much in memory for anybody, before any login."""
LARGEST_OPTIONS = 2**13
"""Bytes of what a session is asked for with: it is kept, and read again with each list."""
LONGEST_NOTE = 1023
"""Of a token, as JupyterHub's table has it; SQLite takes any."""
MOST_TOKENS = 250
"""Of a user, with those of sessions."""

_NOT_THE_HUBS = "Names, and who is an admin, come from the directory."
_LONGEST_SECONDS = 2**31
_MOST_SKIPPED = 2**31
_STATUS_DIGITS = 3

_find_handler_of_tornado = web.Application.find_handler
_page_of_jupyterhub = APIHandler.get_api_pagination

_GONE = (CookieAPIHandler, TokenAPIHandler)
"""How sessions of JupyterHub before 2.0 asked who somebody is: with a cookie, or a token in the
address. Nothing here does."""


_TEXTS = (list[str], type(None))
_MEMBERS: dict[str, tuple[Any, ...]] = {
    "admin": (bool,),
    "auth_state": (dict, type(None)),
    "expires_in": (int, type(None)),
    "group": (str, type(None)),
    "groups": _TEXTS,
    "last_activity": (str, type(None)),
    "name": (str,),
    "note": (str, type(None)),
    "proxy": (bool,),
    "remove": (bool,),
    "roles": _TEXTS,
    "scopes": _TEXTS,
    "servers": (bool, dict, type(None)),
    "user": (str, type(None)),
    "usernames": _TEXTS,
    "users": _TEXTS,
}
"""What JupyterHub's API takes under these names, wherever it takes them."""
_FREE = (UserServerAPIHandler, GroupPropertiesAPIHandler)
"""What takes any names: properties, and a session's options, which the spawner checks."""


class HardenedTokenHandler(OAuthTokenHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Gives tokens for codes, where what is sent is a short text."""

    def post(self) -> None:
        """Refuse what is none; JupyterHub's library fails at it."""
        request_limits.refuse_longer(self.request, request_limits.OAUTH_BODY)
        try:
            self.request.body.decode()
        except UnicodeDecodeError as error:
            raise web.HTTPError(400, "The body must be UTF-8.") from error
        super().post()


class HardenedTokenListHandler(UserTokenListAPIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Lists tokens and makes new ones, up to a number: each is kept until it expires."""

    async def post(self, user_name: str) -> None:
        """Make one."""
        user = self.find_user(user_name)
        if user is not None and self._held(user) >= MOST_TOKENS:
            raise web.HTTPError(409, f"There are {MOST_TOKENS} tokens already: revoke some first.")
        await super().post(user_name)

    def _held(self, user: Any) -> int:
        expires = orm.APIToken.expires_at
        own = self.db.query(orm.APIToken).filter_by(user_id=user.id, client_id="jupyterhub")
        return int(own.filter(or_(expires.is_(None), expires > utcnow(with_tz=False))).count())


class HardenedServerHandler(UserServerAPIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Starts and stops servers. Their names and options do not change afterwards."""

    patch = web.RequestHandler.patch

    def get_server_json_body(self) -> Any:
        """Read one. JupyterHub checks the display name of a new server only, and one of its forms.

        A start of a server that there is takes another one for it, which may be of any length.
        """
        body = super().get_server_json_body()
        if name := normalise_unicode(body.get("display_name") or ""):
            if not is_valid_display_name(name):
                raise web.HTTPError(400, "display_name must be 1 to 255 printable characters.")
            body["display_name"] = name
        return body

    async def post(self, user_name: str, server_name: str = "") -> None:
        """Start one. That it is stopped meanwhile is no fault, to which JupyterHub takes it.

        After a start that failed JupyterHub makes a new spawner, and then asks one that it has
        thrown away whether it still starts. So it said 201 of a session that waits in the queue.
        """
        try:
            await super().post(user_name, server_name)
        except asyncio.CancelledError as error:
            raise web.HTTPError(409, "The session was stopped while it was starting.") from error
        if self.find_user(user_name).spawners[server_name].pending == "spawn":
            self.set_status(202)

    async def stop_single_user(self, user: Any, server_name: str = "") -> Any:
        """Stop one, which remembers by whom.

        A start that is cancelled may take longer to end than the second that JupyterHub gives it:
        its job is cancelled. JupyterHub would fail then; and where another request was quicker.
        """
        spawner = user.spawners.get(server_name)
        if spawner is not None and spawner.pending != "stop":
            spawner.note_stopper(self.current_user.name)
            await starts.are_over(spawner, seconds=self.slow_stop_timeout)
            spawner = user.spawners.get(server_name)
        if spawner is None or spawner.pending == "stop":
            return spawner and spawner._stop_future
        return await super().stop_single_user(user, server_name)


class HardenedUserHandler(UserAPIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Adds and deletes users. What they are called, and who is an admin, the directory says."""

    def patch(self, user_name: str) -> None:
        """Refuse it: whoever renames a user takes over what is that name's."""
        raise web.HTTPError(403, _NOT_THE_HUBS)

    @needs_scope("delete:users")  # type: ignore[untyped-decorator]
    async def delete(self, user_name: str) -> None:
        """Delete a user who has no session.

        JupyterHub stops one that runs, and fails at one that starts and at a named one.
        """
        user = self.find_user(user_name)
        if user is not None and user.active:
            raise web.HTTPError(409, f"Stop the sessions of {user_name} first.")
        await super().delete(user_name)


class HardenedActivityHandler(ActivityAPIHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Hears when a session was used."""

    def post(self, user_name: str) -> None:
        """Refuse a moment that no calendar has in UTC: of the year 1, in a zone east of it."""
        try:
            super().post(user_name)
        except (OverflowError, ValueError) as error:
            raise web.HTTPError(400, "A timestamp is out of range.") from error


class HardenedErrorHandler(ProxyErrorHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Shows the page of an error of the proxy's."""

    async def get(self, status_code_s: str) -> None:
        """Refuse what is no status: Python reads no number of thousands of digits."""
        if len(status_code_s) > _STATUS_DIGITS:
            raise web.HTTPError(404)
        await super().get(status_code_s)


def install() -> None:
    """Put all this in the place of JupyterHub's own."""
    handlers.remove(default_handlers, *_GONE)
    handlers.replace(page_handlers, ProxyErrorHandler, HardenedErrorHandler)
    handlers.replace(default_handlers, OAuthTokenHandler, HardenedTokenHandler)
    handlers.replace(default_handlers, UserTokenListAPIHandler, HardenedTokenListHandler)
    handlers.replace(default_handlers, UserAPIHandler, HardenedUserHandler)
    handlers.replace(default_handlers, UserServerAPIHandler, HardenedServerHandler)
    handlers.replace(default_handlers, ActivityAPIHandler, HardenedActivityHandler)
    APIHandler.get_api_pagination = _page
    APIHandler.get_json_body = _json_body
    BaseHandler.head = head_as_get
    # Its GET is for scripts, which are checked; its HEAD would not be.
    APIHandler.head = web.RequestHandler.head
    web.Application.find_handler = _find_handler  # type: ignore[assignment, method-assign]


def _find_handler(application: web.Application, request: Any, **given: Any) -> Any:
    # Asked when the head of a request is there, and its body is still to come.
    request.connection.set_max_body_size(LARGEST_BODY)
    return _find_handler_of_tornado(application, request, **given)


def _page(handler: Any) -> tuple[int, int]:
    offset, limit = _page_of_jupyterhub(handler)
    if offset > _MOST_SKIPPED:
        # No database takes such a number.
        raise web.HTTPError(400, f"offset must be {_MOST_SKIPPED} at most.")
    return offset, limit


def _json_body(handler: Any) -> Any:
    if not handler.request.body:
        return None
    if isinstance(handler, UserServerAPIHandler):
        request_limits.refuse_longer(handler.request, LARGEST_OPTIONS)
    try:
        body = json.loads(handler.request.body, parse_constant=_refuse)
        # No database takes half a character.
        text = json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise web.HTTPError(400, "The body is not JSON.") from error
    if body is not None and not isinstance(body, dict):
        raise web.HTTPError(400, "The body must be an object.")
    if b"\\u0000" in text:
        raise web.HTTPError(400, "The body must not contain the character NUL.")
    if not isinstance(handler, _FREE):
        _check_members(body or {})
    return body


def _check_members(body: dict[str, Any]) -> None:
    for name in _MEMBERS.keys() & body.keys():
        if not any(_is_one(body[name], kind) for kind in _MEMBERS[name]):
            raise web.HTTPError(400, f"{name} is of the wrong type.")
    if len(body.get("note") or "") > LONGEST_NOTE:
        raise web.HTTPError(400, f"note must have {LONGEST_NOTE} letters at most.")
    if body.get("admin"):
        raise web.HTTPError(403, _NOT_THE_HUBS)
    seconds = body.get("expires_in")
    if seconds is not None and not 0 < seconds <= _LONGEST_SECONDS:
        raise web.HTTPError(400, f"expires_in must be from 1 to {_LONGEST_SECONDS}.")


def _is_one(value: object, kind: Any) -> bool:
    if kind == list[str]:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    # To Python, true is a number.
    return isinstance(value, kind) and (kind is not int or not isinstance(value, bool))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
