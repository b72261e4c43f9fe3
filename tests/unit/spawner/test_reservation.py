"""What a user's sessions hold together: JupyterHub's own users and spawners, no cluster."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.spawner import SimpleLocalProcessSpawner
from jupyterhub.user import User
from traitlets import TraitError
from traitlets.config import Config

from spawner.errors import OverLimit
from spawner.gpu_spawner import GpuSlurmSpawner
from spawner.policy import Holding
from spawner.slurm.records import Cluster, Node, Partition
from spawner.traits import SlurmTraits

NODE = Node("node001", "127.0.0.1", 4, 40, 384 * 1024, is_up=True)
CLUSTER = Cluster((Partition("sxm2", True, True, None, None, (NODE,)),))


class Nodes:
    """Stands in for the watcher of the nodes; like it, it lets others run before it answers."""

    async def cluster(self) -> Cluster:
        await asyncio.sleep(0)
        return CLUSTER


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(SlurmTraits, "_shared", SimpleNamespace(nodes=Nodes()))
    limits = {"max_gpus": 4, "max_sessions": 3}
    return Config({"GpuSlurmSpawner": {"default_limits": limits}})


@pytest.fixture
def user(config: Config) -> Iterator[User]:
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
    return spawner


def start(*spawners: Any) -> list[object]:
    """Check and reserve as starts at the same time do; give each one's end."""

    async def all_at_once() -> list[object]:
        accepting = (spawner._accepted() for spawner in spawners)
        return list(await asyncio.gather(*accepting, return_exceptions=True))

    return asyncio.run(all_at_once())


def test_of_two_starts_at_once_over_the_total_one_passes(user: User) -> None:
    ends = start(server(user, "", gpus=3), server(user, "second", gpus=3))
    refused = [end for end in ends if isinstance(end, OverLimit)]
    assert len(refused) == 1
    assert str(refused[0]) == (
        "You hold 3 GPUs in 1 session and may hold 4 at once; stop one or choose at most 1."
    )


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
    assert one._held_by_others() == Holding()


def test_a_session_without_gpus_counts_as_a_session(user: User) -> None:
    start(server(user, "", gpus=0))
    assert server(user, "second")._held_by_others() == Holding(gpus=0, sessions=1)


def test_what_is_held_is_known_after_a_restart_of_the_hub(user: User) -> None:
    start(first := server(user, "first", gpus=3))
    first.orm_spawner.state = first.get_state()
    user.db.commit()
    restarted = User(user.orm_user, user.settings, user.db)
    assert restarted.spawners["first"].held_gpus == 3
    assert server(restarted, "")._held_by_others() == Holding(gpus=3, sessions=1)


def test_what_only_the_hubs_records_know_counts(user: User) -> None:
    start(first := server(user, "first", gpus=3))
    first.orm_spawner.state = first.get_state()
    user.db.commit()
    restarted = User(user.orm_user, user.settings, user.db)
    assert server(restarted, "")._held_by_others() == Holding(gpus=3, sessions=1)
    assert "first" not in restarted.spawners


def test_a_spawner_of_another_class_holds_nothing(user: User) -> None:
    server(user, "other")
    user.spawners["other"] = SimpleLocalProcessSpawner()
    assert server(user, "")._held_by_others() == Holding()


def test_groups_of_the_directory_count(user: User, config: Config) -> None:
    config.GpuSlurmSpawner.group_limits = {"students": {"max_gpus": 1}}
    user.orm_user.groups.append(orm.Group(name="students"))
    user.db.commit()
    (end,) = start(server(user, "", gpus=2))
    assert str(end) == "2 GPUs were asked for; you may hold 1 at once: choose at most 1."


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
    assert "You hold 3 GPUs in 1 session and may hold 4 at once." in form


def test_who_may_have_no_more_sessions_reads_so_in_place_of_the_form(user: User) -> None:
    start(*(server(user, f"s{number}", gpus=0) for number in range(3)))
    form = asyncio.run(server(user, "").render_form())
    assert "You have 3 sessions and may have 3 at once; stop one first." in form
    assert 'name="gpus"' not in form


@pytest.mark.parametrize(
    ("traits", "words"),
    [
        ({"default_limits": {"max_gpu": 4}}, "default_limits: 'max_gpu' is not a known key"),
        (
            {"group_limits": {"students": {"max_hours": -1}}},
            r"group_limits\['students'\]: max_hours = -1: must be hours",
        ),
        ({"group_limits": {"students": 4}}, r"group_limits\['students'\]: 4: must be a table"),
    ],
)
def test_a_mistake_in_the_limits_is_named(traits: dict[str, object], words: str) -> None:
    with pytest.raises(TraitError, match=words):
        GpuSlurmSpawner(**traits)
