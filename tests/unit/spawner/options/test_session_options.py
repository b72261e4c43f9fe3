"""What a user's sessions hold together: JupyterHub's own users and spawners, no cluster."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.objects import Hub
from jupyterhub.spawner import SimpleLocalProcessSpawner
from jupyterhub.user import User
from traitlets import TraitError
from traitlets.config import Config

from jupyterhub_gpu_slurm.errors import CommandTimedOut, OverLimit, SlurmError
from jupyterhub_gpu_slurm.options import session_options, words
from jupyterhub_gpu_slurm.options.policy import AcceptedRequest, Holding
from jupyterhub_gpu_slurm.outlook.availability import AvailabilityCounter
from jupyterhub_gpu_slurm.outlook.forecaster import Forecaster
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.slurm.associations import Association
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Node, Partition
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from jupyterhub_gpu_slurm.traits import SpawnerTraits

NODE = Node(
    "node001",
    "127.0.0.1",
    (Gres("gpu", "v100", 4),),
    cores=40,
    memory_mb=384 * 1024,
    is_up=True,
    features=frozenset({"nvlink"}),
)
SXM2 = Partition("sxm2", True, True, None, None, (NODE,))
CLUSTER = Cluster((SXM2,))


class Nodes:
    """Stands in for the watcher of the nodes; like it, it lets others run before it answers."""

    told = CLUSTER

    async def cluster(self) -> Cluster:
        await asyncio.sleep(0)
        return self.told


class Client:
    """Stands in for the way to Slurm: which sessions a user has there."""

    def __init__(self) -> None:
        self.listed: dict[int, str] = {}
        self.calls = 0
        self.answer: dict[str, str] = {}

    async def forecast(self, username: str, script: str) -> dict[str, str]:
        return self.answer

    async def sessions(self, username: str) -> dict[int, str]:
        self.calls += 1
        return self.listed


class Accounts:
    """Stands in for Slurm's accounting: what it gives a user, or why it does not tell."""

    def __init__(self) -> None:
        self.associations: tuple[Association, ...] | SlurmError = ()
        self.calls = 0

    async def of(self, username: str) -> tuple[Association, ...]:
        self.calls += 1
        if isinstance(self.associations, SlurmError):
            raise self.associations
        return self.associations


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    stand_in = SimpleNamespace(
        nodes=Nodes(),
        client=Client(),
        free=AvailabilityCounter(ResourceShape()),
        accounts=Accounts(),
    )
    monkeypatch.setattr(SpawnerTraits, "_connection", stand_in)
    return stand_in


@pytest.fixture
def config() -> Config:
    limits = {"max_gpus": 4, "max_sessions": 3}
    return Config({"GpuSlurmSpawner": {"default_limits": limits}})


@pytest.fixture
def user(config: Config, slurm: SimpleNamespace) -> Iterator[User]:
    """A user of JupyterHub's, in a database in memory."""
    session = orm.new_session_factory("sqlite:///:memory:")()
    session.add(account := orm.User(name="ada"))
    session.commit()
    yield User(
        account,
        {"spawner_class": GpuSlurmSpawner, "allow_named_servers": True, "config": config},
        session,
    )
    session.close()
    session.bind.dispose()


def server(user: User, name: str, **options: object) -> Any:
    """Give the spawner of a server that is about to start."""
    spawner = user.get_or_create_spawner(name, name)
    spawner.user_options = options
    # As JupyterHub does before it calls start().
    spawner._spawn_pending = True
    spawner.hub = Hub()
    return spawner


def start(*spawners: Any) -> list[object]:
    """Check and reserve as starts at the same time do; give each one's end."""

    async def all_at_once() -> list[object]:
        accepting = (
            spawner.session_options.grant(spawner.user_options, spawner._reserve)
            for spawner in spawners
        )
        return list(await asyncio.gather(*accepting, return_exceptions=True))

    return asyncio.run(all_at_once())


def test_of_two_starts_at_once_over_the_total_one_passes(user: User) -> None:
    ends = start(server(user, "", gpus=3), server(user, "second", gpus=3))
    refused = [end for end in ends if isinstance(end, OverLimit)]
    assert len(refused) == 1
    assert str(refused[0]) == words.too_much_held(3, sessions=1, most=4)


def test_of_many_starts_at_once_no_more_pass_than_sessions_are_allowed(user: User) -> None:
    ends = start(*(server(user, f"s{number}", gpus=0) for number in range(6)))
    assert sum(isinstance(end, OverLimit) for end in ends) == 3


def test_what_is_held_counts_for_the_next_and_is_free_again(user: User) -> None:
    first = server(user, "", gpus=4)
    second = server(user, "second", gpus=1)
    start(first)
    assert isinstance(start(second)[0], OverLimit)
    # What JupyterHub does after a stop, and after a start that failed.
    first.clear_state()
    assert not isinstance(start(second)[0], OverLimit)


def test_a_refused_start_holds_nothing(user: User) -> None:
    refused = server(user, "", gpus=5)
    assert isinstance(start(refused)[0], OverLimit)
    assert refused.held_gpus is None


def test_a_session_does_not_count_against_itself(user: User) -> None:
    one = server(user, "", gpus=4)
    start(one)
    assert held_by_others(one) == Holding()


def test_a_session_without_gpus_counts_as_a_session(user: User) -> None:
    start(server(user, "", gpus=0))
    assert held_by_others(server(user, "second")) == Holding(gpus=0, sessions=1)


def held_by_others(spawner: Any) -> Holding:
    held: Holding = asyncio.run(spawner.session_options.holding())
    return held


def restarted(user: User) -> User:
    """Give the same user in a hub that was started again."""
    return User(user.orm_user, user.settings, user.db)


def saved(spawner: Any, session_id: str) -> None:
    """Save a spawner's state as a start does before it submits."""
    spawner.record.state = replace(spawner.session, id=session_id)
    spawner.orm_spawner.state = spawner.get_state()
    spawner.db.commit()


def test_what_is_held_is_known_after_a_restart_of_the_hub(user: User) -> None:
    start(first := server(user, "first", gpus=3))
    saved(first, "a" * 32)
    after = restarted(user)
    after.spawners["first"]._check_pending = True
    assert held_by_others(server(after, "")) == Holding(gpus=3, sessions=1)


@pytest.mark.parametrize(
    ("in_slurm", "expected"), [("a" * 32, Holding(3, 1)), ("b" * 32, Holding(0, 0))]
)
def test_an_interrupted_start_counts_while_its_job_is_there(
    user: User, slurm: SimpleNamespace, in_slurm: str, expected: Holding
) -> None:
    start(first := server(user, "first", gpus=3))
    saved(first, "a" * 32)
    slurm.client.listed = {12: in_slurm}
    one = server(restarted(user), "")
    assert held_by_others(one) == expected


def test_slurm_is_asked_for_interrupted_starts_only(user: User, slurm: SimpleNamespace) -> None:
    start(server(user, "first", gpus=1), server(user, "second", gpus=1))
    assert slurm.client.calls == 0


def test_a_spawner_of_another_class_holds_nothing(user: User) -> None:
    server(user, "other")
    user.spawners["other"] = SimpleLocalProcessSpawner()
    assert held_by_others(server(user, "")) == Holding()


def test_each_server_of_a_user_has_its_own_last_word(user: User) -> None:
    one, other = server(user, ""), server(user, "second")
    one._endings[other._log_name] = "It was cancelled."
    assert "It was cancelled." not in asyncio.run(one.render_form())
    assert "It was cancelled." in asyncio.run(other.render_form())
    other.delete_forever()
    assert "It was cancelled." not in asyncio.run(other.render_form())


def test_groups_of_the_directory_count(user: User, config: Config) -> None:
    config.GpuSlurmSpawner.group_limits = {"students": {"max_gpus": 1}}
    user.orm_user.groups.append(orm.Group(name="students"))
    user.db.commit()
    (end,) = start(server(user, "", gpus=2))
    assert str(end) == words.too_many_at_once(2, most=1)


def test_groups_of_the_system_count(user: User, config: Config) -> None:
    config.GpuSlurmSpawner.group_limits = {"daemon": {"max_gpus": 1}}
    user.orm_user.name = "daemon"
    (end,) = start(server(user, "", gpus=2))
    assert isinstance(end, OverLimit)


def test_the_form_offers_what_the_other_sessions_leave(user: User) -> None:
    start(server(user, "first", gpus=3))
    form = asyncio.run(server(user, "").render_form())
    assert 'name="gpus" value="1"' in form
    assert 'name="gpus" value="2"' not in form
    assert words.held(3, sessions=1, most=4) in form


def test_who_may_have_no_more_sessions_reads_so_in_place_of_the_form(user: User) -> None:
    start(*(server(user, f"s{number}", gpus=0) for number in range(3)))
    form = asyncio.run(server(user, "").render_form())
    assert words.too_many_sessions(3, most=3) in form
    assert 'name="gpus"' not in form
    assert "Try again in a minute" not in form


PHYSICS = Association("physics", frozenset({"normal", "high"}), is_default=True)
TEACHING = Association("teaching", frozenset({"normal"}))


def test_the_form_has_no_other_choices_where_nothing_is_to_be_chosen(user: User) -> None:
    form = asyncio.run(server(user, "").render_form())
    for name in ("account", "qos", "reservation", "constraint"):
        assert f'name="{name}"' not in form
    assert "gpu-form-profiles-title" not in form


def test_the_form_offers_the_accounts_that_slurm_gives_the_user(
    user: User, slurm: SimpleNamespace
) -> None:
    slurm.accounts.associations = (PHYSICS, TEACHING)
    form = asyncio.run(server(user, "").render_form())
    assert '<option value="">Your default (physics)</option>' in form
    assert '<option value="teaching">teaching</option>' in form
    assert '<option value="high">high</option>' in form


def test_an_accounting_that_does_not_answer_leaves_the_form(
    user: User, slurm: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    slurm.accounts.associations = CommandTimedOut("x", detail="sacctmgr did not answer in 20 s")
    form = asyncio.run(server(user, "").render_form())
    assert 'name="gpus" value="1"' in form
    assert 'name="account"' not in form
    assert "No accounts to choose for ada: sacctmgr did not answer in 20 s" in caplog.text


def test_an_account_is_checked_where_the_session_starts(user: User, slurm: SimpleNamespace) -> None:
    slurm.accounts.associations = (PHYSICS, TEACHING)
    granted, refused = start(
        server(user, "", gpus=0, account="teaching", qos="normal"),
        server(user, "second", gpus=0, account="medicine"),
    )
    assert isinstance(granted, AcceptedRequest)
    assert (granted.account, granted.qos) == ("teaching", "normal")
    assert str(refused) == words.not_to_choose("Account", "medicine", "physics", "teaching")


def test_a_chosen_account_needs_the_accountings_word(user: User, slurm: SimpleNamespace) -> None:
    slurm.accounts.associations = CommandTimedOut("Slurm does not answer.")
    assert start(server(user, "", gpus=0, account="physics")) == [slurm.accounts.associations]


def test_a_start_without_a_choice_asks_no_accounting(user: User, slurm: SimpleNamespace) -> None:
    start(server(user, "", gpus=0))
    assert slurm.accounts.calls == 0


def test_a_site_that_offers_no_accounts_lets_nobody_choose_one(
    user: User, config: Config, slurm: SimpleNamespace
) -> None:
    config.GpuSlurmSpawner.offer_accounts = False
    slurm.accounts.associations = (PHYSICS, TEACHING)
    assert 'name="account"' not in asyncio.run(server(user, "").render_form())
    (refused,) = start(server(user, "", gpus=0, account="physics"))
    assert isinstance(refused, OverLimit)
    assert slurm.accounts.calls == 0


def test_what_the_site_lists_can_be_chosen_and_nothing_else(user: User, config: Config) -> None:
    config.GpuSlurmSpawner.default_limits = {"reservations": ["course"], "constraints": ["nvlink"]}
    form = asyncio.run(server(user, "").render_form())
    assert '<option value="course">course</option>' in form
    assert '<option value="nvlink">nvlink</option>' in form
    granted, refused = start(
        server(user, "", gpus=0, reservation="course", constraint="nvlink"),
        server(user, "second", gpus=0, constraint="a100"),
    )
    assert isinstance(granted, AcceptedRequest)
    assert (granted.reservation, granted.constraint) == ("course", "nvlink")
    assert str(refused) == words.not_to_choose("Node feature", "a100", "nvlink")


def test_a_size_that_no_node_with_the_chosen_feature_has_is_not_waited_for(
    user: User, config: Config, slurm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(NODE, name="node002", gres=(Gres("gpu", "v100", 2),), features=frozenset("x"))
    monkeypatch.setattr(slurm.nodes, "told", Cluster((replace(SXM2, nodes=(NODE, small)),)))
    config.GpuSlurmSpawner.default_limits = {"constraints": ["nvlink", "x"]}
    words = "sbatch: error: Requested node configuration is not available"
    slurm.client.answer = {"never": words}
    slurm.forecasts = Forecaster(slurm.client)

    def states(feature: str) -> list[str]:
        options = server(user, "").session_options
        fields = {"gpus": ["4"], "constraint": [feature]}
        found = options.forecast(fields, lambda request: f"#!{request}")
        return [asyncio.run(found).state]

    assert states("nvlink") == ["unknown"]
    assert states("x") == ["never"]


def test_the_sites_sizes_fill_in_the_form_where_they_can_be_had(user: User, config: Config) -> None:
    config.GpuSlurmSpawner.profiles = {
        "small": {"title": "Small", "description": "To <try> things", "gpus": 1, "hours": 2},
        "huge": {"title": "Huge", "gpus": 8},
    }
    form = asyncio.run(server(user, "").render_form())
    assert 'href="?opt-gpus=1&amp;opt-hours=2"' in form
    assert "<span>To &lt;try&gt; things</span>" in form
    # No node has eight.
    assert "Huge" not in form


@pytest.mark.parametrize(
    ("traits", "mistake"),
    [
        ({"default_limits": {"max_gpu": 4}}, "default_limits: 'max_gpu' is not a known key"),
        (
            {"group_limits": {"students": {"max_hours": -1}}},
            r"group_limits\['students'\]: max_hours = -1: must be hours",
        ),
        ({"profiles": {"x": {"gpus": 1}}}, r"profiles\['x'\]: a profile needs a title"),
        ({"profiles": {"x": {"title": "X", "gpu": 1}}}, r"profiles\['x'\]: Unknown option 'gpu'"),
        ({"profiles": {"x": {"title": "X"}}}, r"profiles\['x'\]: a profile needs at least one"),
        ({"group_limits": {"students": 4}}, r"group_limits\['students'\]: 4: must be a table"),
        ({"memory_mb_without_gpu": 0}, "memory_mb_without_gpu.* should not be less than 1"),
    ],
)
def test_a_mistake_in_sizes_limits_and_profiles_is_named(
    traits: dict[str, object], mistake: str
) -> None:
    with pytest.raises(TraitError, match=mistake):
        GpuSlurmSpawner(**traits)


@pytest.mark.parametrize(
    "ask",
    [
        lambda options: options.groups(),
        lambda options: options._check_image("lab"),
    ],
    ids=["directory", "images"],
)
def test_what_hangs_holds_no_thread_of_the_hubs(
    user: User, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Any], Any]
) -> None:
    """The hub tries its database in one; without any, it is taken to be away."""
    goes_on = threading.Event()

    def hang(_: str) -> list[str]:
        goes_on.wait(30)
        return []

    monkeypatch.setattr(session_options, "groups_of", hang)
    spawner = server(user, "")
    spawner.session_images = {"lab": {"title": "Lab", "path": "/images/lab.sif"}}
    spawner.image_check = hang

    async def try_database() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        asking = asyncio.create_task(ask(spawner.session_options))
        await asyncio.sleep(0.05)
        try:
            await asyncio.wait_for(asyncio.to_thread(lambda: None), 2)
        finally:
            goes_on.set()
            await asking

    asyncio.run(try_database())
