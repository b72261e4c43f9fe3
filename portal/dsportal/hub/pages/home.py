"""The page Home: a card for each session, the last ones, and more time for one that is running.

JupyterHub's page knows that there is a server. What it holds, where and until when, the spawner
knows; how the last ones ended, the record of sessions.

``POST /hub/portal/extend`` with ``server`` and ``minutes`` extends one of the user's own sessions;
it is a form of the page, with JupyterHub's token of its forms.

Tried with JupyterHub 6.1.1.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jupyterhub.handlers import BaseHandler, default_handlers
from jupyterhub.handlers.pages import HomeHandler
from tornado import web

from dsportal.hub import handlers
from dsportal.hub.pages import own_sessions
from dsportal.hub.pages.session_status import idle_limit
from dsportal.hub.pages.start_again import choices
from dsportal.usage.record import PastSession
from dsportal.usage.recorder import Recorder
from jupyterhub_gpu_slurm.errors import SpawnerError
from jupyterhub_gpu_slurm.hub_api import answered
from jupyterhub_gpu_slurm.outlook.availability import label
from jupyterhub_gpu_slurm.session import endings

EXTEND_PATH = "/portal/extend"
"""Below the hub's own address."""

_MOST_PAST = 5
_USUAL_MINUTES = (30, 60, 120, 240, 480)


@dataclass(frozen=True)
class SessionCard:
    """A session as the page shows it. ``None``, or empty: not known yet."""

    gpus: int | None = None
    gpu_type: str = ""
    cores: int | None = None
    memory_mb: int | None = None
    node: str = ""
    started: datetime | None = None
    ends: datetime | None = None
    extensions: tuple[int, ...] = ()
    """By how many minutes it can be extended."""
    reason: str = ""
    """Why it cannot be extended."""


@dataclass(frozen=True)
class Ended:
    """A session that is over, and why it ended."""

    session: PastSession
    why: str
    title: str
    """What its user calls it; empty for the default session."""
    is_startable: bool
    """Whether it can be started again now: it still exists, and is neither running nor starting."""

    @property
    def choices(self) -> dict[str, str]:
        """Return what the form has to start the same again."""
        return choices(self.session)


def extensions(longest: int) -> tuple[int, ...]:
    """Return choices of minutes up to a longest one, which is the last of them."""
    if longest < 1:
        return ()
    return (*(minutes for minutes in _USUAL_MINUTES if minutes < longest), longest)


async def card_of(spawner: Any) -> SessionCard:
    """Return what is known of a session."""
    held = spawner.held_resources
    if not spawner.active or held is None:
        return SessionCard()
    job = spawner.reporter.last_running
    node = (job.node or "") if job else ""
    card = SessionCard(
        gpus=held.gpus,
        gpu_type=_gpu_type(spawner, node) if held.gpus else "",
        cores=held.cores,
        memory_mb=held.memory_mb,
        node=node,
        started=job.start if job else None,
    )
    if not (spawner.ready and spawner.has_job):
        return card
    try:
        possible = await spawner.possible_extension()
    except SpawnerError:
        return card
    return replace(
        card,
        ends=possible.deadline,
        extensions=extensions(possible.longest // timedelta(minutes=1)),
        reason=possible.reason,
    )


def _gpu_type(spawner: Any, node: str) -> str:
    """Return what people call the session's GPUs: as chosen, else the node's, where it has one."""
    if chosen := spawner.session.options.get("gpu_type"):
        return label(chosen)
    cluster = spawner.slurm.nodes.last
    if cluster is None:
        # For the next one who looks; a node's GPUs stay what they are.
        spawner.slurm.nodes.look()
        return ""
    types = cluster.gpu_types_of(node)
    return label(types[0]) if len(types) == 1 else ""


class SessionHomeHandler(HomeHandler):  # type: ignore[misc]  # JupyterHub has no types
    """JupyterHub's page, with what our template shows besides."""

    def initialize(self, recorder: Recorder) -> None:
        """Take what knows the sessions that are over."""
        self.recorder = recorder

    def render_template(self, name: str, sync: bool = False, **told: Any) -> Any:
        """Return the page; one of an error is wanted at once, and is not ours."""
        if sync:
            return super().render_template(name, sync=True, **told)
        return self._with_sessions(name, **told)

    async def _with_sessions(self, name: str, **told: Any) -> str:
        """Add the cards and the last sessions."""
        user = told.get("user")
        if name == "home.html" and user is not None:
            names = user.orm_spawners if self.allow_named_servers else ("",)
            told["cards"] = {one: await card_of(user.spawners[one]) for one in {"", *names}}
            past = await self.recorder.past(user.name, _MOST_PAST)
            limit = await idle_limit(user, *past)
            idle = {one for one in {"", *names} if not user.spawners[one].active}
            titles = {one: spawner.display_name for one, spawner in user.orm_spawners.items()}
            told["past"] = [
                Ended(
                    session=one,
                    why=endings.because(one.ending, limit),
                    title=(titles.get(one.name) or one.name) if one.name else "",
                    is_startable=one.name in idle,
                )
                for one in past
            ]
        return str(await super().render_template(name, **told))


class HomeExtensionHandler(BaseHandler):  # type: ignore[misc]
    """Extends a session of whoever asks."""

    @web.authenticated
    async def post(self) -> None:
        """Add the minutes, and show the page again."""
        name, minutes = self.get_argument("server", ""), self.get_argument("minutes", "")
        if not (minutes.isascii() and minutes.isdigit() and 0 < len(minutes) < 7 and int(minutes)):
            raise web.HTTPError(400, "minutes must be a whole number, and not 0.")
        spawner = own_sessions.running(self.current_user, name)
        with answered(refusal=400):
            await spawner.extend(int(minutes))
        self.redirect(f"{self.hub.base_url}home")


def install(recorder: Recorder) -> None:
    """Put them into the hub."""
    given = {"recorder": recorder}
    handlers.replace(default_handlers, HomeHandler, SessionHomeHandler, given)
    handlers.add(default_handlers, EXTEND_PATH, HomeExtensionHandler)
