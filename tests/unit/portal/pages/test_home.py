"""What Home says of a session."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.handlers import default_handlers
from jupyterhub.handlers.pages import HomeHandler
from tornado.web import HTTPError

from dsportal.hub.pages import home
from dsportal.hub.pages.home import (
    HomeExtensionHandler,
    SessionCard,
    SessionHomeHandler,
    card_of,
    extensions,
)
from dsportal.usage.record import UsageRecord
from dsportal.usage.recorder import Recorder
from jupyterhub_gpu_slurm.errors import AccountUnavailable, OverLimit, SlurmError
from jupyterhub_gpu_slurm.resources import Resources
from jupyterhub_gpu_slurm.session.deadline import PossibleExtension
from jupyterhub_gpu_slurm.session.endings import because
from jupyterhub_gpu_slurm.session.observation import Ending
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Job, Node, Partition

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
POSSIBLE = PossibleExtension(NOON + HOUR, HOUR, HOUR)


class StandInSpawner:
    """Stands in for a session of the hub's."""

    active = ready = has_job = True
    display_name = "My run"
    job_id = "12"

    def __init__(self, possible: PossibleExtension | Exception = POSSIBLE, **changes: Any) -> None:
        self._possible = possible
        self.held_resources = Resources(2, 16, 98304)
        self.session = SimpleNamespace(options={"gpu_type": "v100"})
        self.slurm = SimpleNamespace(nodes=SimpleNamespace(last=None, look=lambda: None))
        running = Job(12, "RUNNING", node="node001", start=NOON)
        self.reporter = SimpleNamespace(last_running=running)
        self.extended: list[int] = []
        vars(self).update(changes)

    async def possible_extension(self) -> PossibleExtension:
        if isinstance(self._possible, Exception):
            raise self._possible
        return self._possible

    async def extend(self, minutes: int) -> None:
        if isinstance(self._possible, Exception):
            raise self._possible
        self.extended.append(minutes)


def card(spawner: StandInSpawner) -> SessionCard:
    return asyncio.run(card_of(spawner))


def test_a_card_says_what_runs_where_and_until_when() -> None:
    assert card(StandInSpawner()) == SessionCard(
        gpus=2,
        gpu_type="V100",
        cores=16,
        memory_mb=98304,
        node="node001",
        started=NOON,
        ends=NOON + HOUR,
        extensions=(30, 60),
    )


@pytest.mark.parametrize(
    ("types", "said"), [(("a100",), "A100"), ((None,), ""), (("a100", "v100"), "")]
)
def test_what_was_not_chosen_is_what_the_node_has(types: tuple[str | None, ...], said: str) -> None:
    gres = tuple(Gres("gpu", kind, 4) for kind in types)
    node = Node("node001", "10.0.0.1", gres, cores=40, memory_mb=1, is_up=True)
    other = replace(node, name="node002", gres=(Gres("gpu", "h100", 8),))
    cluster = Cluster((Partition("sxm2", True, True, None, None, (other, node)),))
    nodes = SimpleNamespace(last=cluster, look=lambda: None)
    chosen = StandInSpawner(session=SimpleNamespace(options={}), slurm=SimpleNamespace(nodes=nodes))
    assert card(chosen).gpu_type == said


def test_slurm_is_asked_for_a_nodes_gpus_once_and_where_there_are_some() -> None:
    asked: list[int] = []
    nodes = SimpleNamespace(last=None, look=lambda: asked.append(1))
    unknown: dict[str, Any] = {
        "session": SimpleNamespace(options={}),
        "slurm": SimpleNamespace(nodes=nodes),
    }
    assert card(StandInSpawner(**unknown, held_resources=Resources(0, 2, 1024))).gpu_type == ""
    assert asked == []
    assert card(StandInSpawner(**unknown)).gpu_type == ""
    assert asked == [1]
    nodes.last = Cluster(())
    assert card(StandInSpawner(**unknown)).gpu_type == ""
    assert asked == [1]


def test_a_session_that_starts_has_no_end_yet() -> None:
    waits = StandInSpawner(ready=False, reporter=SimpleNamespace(last_running=None))
    assert card(waits) == SessionCard(gpus=2, gpu_type="V100", cores=16, memory_mb=98304)


def test_no_session_has_an_empty_card() -> None:
    assert card(StandInSpawner(active=False)) == SessionCard()


def test_a_silent_slurm_leaves_the_end_open() -> None:
    assert card(StandInSpawner(SlurmError("It does not answer."))).ends is None


def test_a_session_that_cannot_be_extended_says_why() -> None:
    told = card(StandInSpawner(replace(POSSIBLE, longest=timedelta(0), reason="Three times.")))
    assert (told.extensions, told.reason) == ((), "Three times.")


@pytest.mark.parametrize(
    ("longest", "choices"), [(0, ()), (20, (20,)), (60, (30, 60)), (90, (30, 60, 90))]
)
def test_the_longest_extension_is_the_last_choice(longest: int, choices: tuple[int, ...]) -> None:
    assert extensions(longest) == choices


def test_the_idle_limit_is_asked_for_once_for_all_that_were_unused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    shown: dict[str, Any] = {}
    ends = [Ending.UNUSED, Ending.TIME_LIMIT, Ending.UNUSED]

    class Silent(StandInSpawner):
        async def idle_limit(self) -> None:
            asked.append(1)
            raise AccountUnavailable("It does not answer.")

    async def past(*_: object) -> list[Any]:
        return [SimpleNamespace(ending=one, name="") for one in ends]

    async def render(_: object, name: str, **told: Any) -> str:
        shown.update(told)
        return name

    spawner = Silent(active=False)
    user = SimpleNamespace(name="ada", spawner=spawner, spawners={"": spawner}, orm_spawners={})
    handler: Any = SessionHomeHandler.__new__(SessionHomeHandler)
    handler.recorder = SimpleNamespace(past=past)
    handler.application = SimpleNamespace(settings={})
    monkeypatch.setattr(HomeHandler, "render_template", render)
    asyncio.run(handler._with_sessions("home.html", user=user))
    assert [one.why for one in shown["past"]] == [because(one) for one in ends]
    assert asked == [1]


@pytest.mark.parametrize(
    ("settings", "active", "startable"),
    [
        # One that was deleted would need a place among those that a user may have.
        ({"allow_named_servers": True}, set(), {"", "two"}),
        ({"allow_named_servers": True}, {""}, {"two"}),
        ({"allow_named_servers": True}, {"two"}, {""}),
        # Not more than one session each any more.
        ({}, set(), {""}),
        ({}, {""}, set()),
    ],
)
def test_the_same_can_be_started_again_where_no_session_of_its_name_is_there(
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, bool],
    active: set[str],
    startable: set[str],
) -> None:
    shown: dict[str, Any] = {}

    async def past(*_: object) -> list[Any]:
        return [SimpleNamespace(ending=Ending.STOPPED, name=one) for one in ("", "two", "gone")]

    async def render(_: object, name: str, **told: Any) -> str:
        shown.update(told)
        return name

    spawners = {one: StandInSpawner(active=one in active) for one in ("", "two")}
    user = SimpleNamespace(name="ada", spawners=spawners, orm_spawners=spawners)
    handler: Any = SessionHomeHandler.__new__(SessionHomeHandler)
    handler.recorder = SimpleNamespace(past=past)
    handler.application = SimpleNamespace(settings=settings)
    monkeypatch.setattr(HomeHandler, "render_template", render)
    asyncio.run(handler._with_sessions("home.html", user=user))
    assert {one.session.name for one in shown["past"] if one.is_startable} == startable
    titles = {one.session.name: one.title for one in shown["past"]}
    assert titles == {"": "", "two": "My run", "gone": "gone"}


def ask_to_extend(spawner: StandInSpawner, minutes: str, server: str = "") -> str:
    sent_to: list[str] = []
    handler: Any = SimpleNamespace(
        get_argument=lambda name, _: {"minutes": minutes, "server": server}[name],
        current_user=SimpleNamespace(spawners={"": spawner}, orm_spawners={}),
        hub=SimpleNamespace(base_url="/hub/"),
        redirect=sent_to.append,
        log=SimpleNamespace(warning=lambda *_: None),
    )
    post: Any = HomeExtensionHandler.post
    asyncio.run(post.__wrapped__(handler))
    return sent_to[0]


def test_the_form_extends_and_shows_the_page_again() -> None:
    spawner = StandInSpawner()
    assert ask_to_extend(spawner, "60") == "/hub/home"
    assert spawner.extended == [60]


@pytest.mark.parametrize("minutes", ["", "0", "-5", "1.5", "1" * 9, "٣", "a"])
def test_other_minutes_are_refused(minutes: str) -> None:
    spawner = StandInSpawner()
    with pytest.raises(HTTPError) as refused:
        ask_to_extend(spawner, minutes)
    assert refused.value.status_code == 400
    assert spawner.extended == []


@pytest.mark.parametrize(
    ("spawner", "server", "status"),
    [
        (StandInSpawner(OverLimit("Too long.")), "", 400),
        (StandInSpawner(SlurmError("It does not answer.")), "", 503),
        (StandInSpawner(ready=False), "", 409),
        (StandInSpawner(), "another", 409),
    ],
)
def test_what_cannot_be_extended_says_so(spawner: StandInSpawner, server: str, status: int) -> None:
    with pytest.raises(HTTPError) as refused:
        ask_to_extend(spawner, "60", server)
    assert refused.value.status_code == status


def test_the_page_of_an_error_is_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def render(_: object, name: str, sync: bool = False, **told: object) -> str:
        assert sync
        return f"{name}: {told['status_code']}"

    monkeypatch.setattr(HomeHandler, "render_template", render)
    handler: Any = SessionHomeHandler.__new__(SessionHomeHandler)
    assert handler.render_template("error.html", sync=True, status_code=503) == "error.html: 503"


def test_the_page_is_ours_however_often_it_is_put_in() -> None:
    before = list(default_handlers)
    try:
        for folder in ("/a", "/b"):
            home.install(Recorder(UsageRecord.of_hub(folder), timedelta(days=90)))
        kinds = [one[1] for one in default_handlers]
        assert kinds.count(SessionHomeHandler) == 1
        assert kinds.count(HomeExtensionHandler) == 1
        assert HomeHandler not in kinds
    finally:
        default_handlers[:] = before
