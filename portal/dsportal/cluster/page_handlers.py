"""Routes of the cluster page: its HTML, its event stream, and the forms of admins."""

import json
import sqlite3
from typing import Any

from jupyterhub.utils import url_path_join

from dsportal.cluster import viewer_access
from dsportal.cluster.admin import gpu_hours, stop
from dsportal.cluster.handlers import EventsHandler, Handler, event
from dsportal.cluster.openapi import UsageAnswer
from dsportal.cluster.shared_view import SharedView
from dsportal.response_headers import head_as_get
from dsportal.sizing.answer import answer
from dsportal.sizing.question import SizingError, question

# Slurm's accounting takes a minute for a large cluster, and the nodes are what is looked for.
_HOURS_SECONDS = 3.0


class PageHandler(Handler):
    """GET handler of the cluster page."""

    head = head_as_get

    def turn_away(self) -> None:
        """Send a browser to the login, and back afterwards."""
        self.redirect(self.get_login_url())

    async def get(self) -> None:
        """Write the page as it is now; its script keeps it so."""
        shared = await self.shared()
        is_admin = viewer_access.is_admin(self.model)
        self.finish(
            self.context.pages.page(
                shared,
                self.viewer,
                name=str(self.model["name"]),
                sessions=await self.context.sessions.listing(shared.snapshot) if is_admin else None,
                hours=await self._hours() if is_admin else None,
                xsrf_token=self.xsrf_token.decode(),
            )
        )

    async def _hours(self) -> UsageAnswer | None:
        try:
            return await gpu_hours(self, _HOURS_SECONDS)
        except sqlite3.Error:
            return None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is wrong, on a page with a way to try again."""
        self.finish(self.context.pages.error(status_code, self._words(**kwargs)))


class PageEventsHandler(EventsHandler):
    """Tells the page which of its parts to replace, with their new text."""

    async def news(self, shared: SharedView, told: dict[str, object]) -> list[str]:
        """Return one event with the parts that changed."""
        pages = self.context.pages
        parts = dict(pages.parts(shared, self.viewer))
        if viewer_access.is_admin(self.model):
            parts["sessions"] = pages.sessions(await self.context.sessions.listing(shared.snapshot))
        changed = {name: html for name, html in parts.items() if told.get(name) != html}
        told.update(changed)
        if not changed:
            return []
        as_of = shared.snapshot.as_of.timestamp()
        return [event("parts", json.dumps({"as_of": as_of, "parts": changed}))]


class StopFormHandler(PageHandler):
    """Takes the page's stop buttons, also from a browser without its script."""

    async def get(self) -> None:
        """Go back to the page: there is nothing to read here."""
        self.redirect(self.hub_auth.base_url)

    async def post(self) -> None:
        """Stop the session that the button is of, and go back to the page."""
        user, _, server = self.get_body_argument("session").partition("/")
        await stop(self, user, server)
        self.redirect(url_path_join(self.hub_auth.base_url, "#sessions-title"), status=303)


class SizingHandler(PageHandler):
    """Shows how much storage GPUs need; what is asked is in the address."""

    async def get(self) -> None:
        """Write the form, and the answer or what is wrong; an address without a question has one.

        Nothing is asked of Slurm.
        """
        given = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        faults, sized = {}, None
        try:
            asked = question(given)
            sized = asked, answer(asked)
        except SizingError as error:
            faults = error.faults
            self.set_status(400)
        about = {"name": str(self.model["name"]), "is_admin": viewer_access.is_admin(self.model)}
        self.finish(self.context.pages.sizing(given, faults, sized, **about))
