"""API routes for admins alone: sessions, the end of one, and GPU hours."""

import asyncio
import json
import logging
import sqlite3
from datetime import UTC, datetime
from typing import Any

from tornado.httpclient import HTTPClientError
from tornado.web import HTTPError

from dsportal.cluster import usage, viewer_access, words
from dsportal.cluster.handlers import Handler
from dsportal.cluster.openapi import UsageAnswer

log = logging.getLogger(__name__)

_REFUSALS = (403, 404)


def check_is_admin(handler: Handler) -> None:
    """Answer 403 to everybody who is no admin."""
    if not viewer_access.is_admin(handler.model):
        raise HTTPError(403, words.ADMINS_ONLY)


async def stop(handler: Handler, user: str, server: str) -> None:
    """Stop a session by the admin's own right, which the login at the page, or the token, has.

    A token that can only look, such as that of a session of the admin's, cannot stop anything.
    """
    check_is_admin(handler)
    admin = str(handler.model["name"])
    try:
        token = handler.hub_auth.get_token(handler)
        await handler.context.sessions.stop(user, server, token)
    except HTTPClientError as error:
        if error.code in _REFUSALS:
            raise HTTPError(403, words.NO_SUCH_SESSION) from error
        raise HTTPError(502, words.NOT_STOPPED) from error
    except OSError as error:
        raise HTTPError(502, words.HUB_SILENT) from error
    log.info("%r stopped the session %r of %r", admin, server, user)


async def gpu_hours(handler: Handler, patience: float | None = None) -> UsageAnswer:
    """Read whose hours are asked for, and find them; raises `sqlite3.Error`.

    What is not there after ``patience`` seconds is said to be counted still, and goes on.
    """
    try:
        days, by = handler.get_argument("days", "7"), handler.get_argument("by", "user")
        asked = usage.question(days, by)
    except ValueError as error:
        raise HTTPError(400, str(error)) from error
    rows: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(patience):
            found = await usage.answer(handler.context.usage, asked, datetime.now(UTC))
        rows, trouble = found.rows, words.SESSIONS_ALONE if found.lacks_jobs else None
    except TimeoutError:
        trouble = words.STILL_COUNTED
    return {"days": asked.days, "by": asked.by, "trouble": trouble, "rows": rows}


class AdminHandler(Handler):
    """Lets in admins only."""

    async def prepare(self) -> None:
        """Ask the hub who it is, and whether it is an admin."""
        await super().prepare()
        check_is_admin(self)


class SessionsHandler(AdminHandler):
    """Answers which sessions there are."""

    async def get(self) -> None:
        """Write the sessions."""
        shared = await self.shared()
        told = await self.context.sessions.listing(shared.snapshot)
        self.set_header("Content-Type", "application/json")
        self.finish(
            json.dumps(
                {
                    "as_of": shared.snapshot.as_of.timestamp(),
                    "trouble": told.trouble or shared.trouble,
                    "sessions": told.rows,
                }
            )
        )


class StopSessionHandler(AdminHandler):
    """DELETE handler that stops a session."""

    async def delete(self, user: str, server: str = "") -> None:
        """Stop it; its job is cancelled while this is answered or soon after."""
        await stop(self, user, server)
        self.set_status(202)


class UsageHandler(AdminHandler):
    """Answers how many GPU hours were used: as JSON, or as a file for a table calculation."""

    async def get(self, kind: str | None) -> None:
        """Write the rows; as CSV where ``kind`` is ``.csv``."""
        try:
            hours = await gpu_hours(self)
        except sqlite3.Error as error:
            log.warning("The record of GPU hours cannot be read: %s", error)
            raise HTTPError(503, words.NO_RECORD) from error
        if kind is None:
            self.set_header("Content-Type", "application/json")
            self.finish(json.dumps(hours))
        elif hours["trouble"] is not None:
            # A file could not say so: whoever reads it would take it for all.
            raise HTTPError(503, words.try_again(words.NO_FILE))
        else:
            self.set_header("Content-Type", "text/csv; charset=utf-8")
            name = f"gpu-hours-by-{hours['by']}-{hours['days']}-days.csv"
            self.set_header("Content-Disposition", f'attachment; filename="{name}"')
            self.finish(usage.as_csv(hours["rows"]))
