"""What sacctmgr tells of a user, as 22.05 prints it; who is asked, and how often."""

import asyncio

import pytest

from jupyterhub_gpu_slurm.errors import CommandFailed, UnreadableOutput
from jupyterhub_gpu_slurm.slurm import associations
from jupyterhub_gpu_slurm.slurm.association_cache import AssociationCache
from jupyterhub_gpu_slurm.slurm.associations import Accounting, Association

CONFIG = "AccountingStorageType   = accounting_storage/slurmdbd\nClusterName             = dgx\n"


def test_accounts_and_qos_are_read() -> None:
    text = "ada|physics|physics||high,normal\nada|physics|teaching|mig|normal\n"
    assert associations.read(text, "Ada") == (
        Association("physics", frozenset({"high", "normal"}), is_default=True),
        Association("teaching", frozenset({"normal"}), partition="mig"),
    )


def test_a_user_without_an_account_has_none() -> None:
    # Seen with 22.05.
    assert associations.read("", "ada") == ()
    assert associations.read("ada||||\n", "ada") == ()


def test_names_that_no_script_may_hold_are_left_out() -> None:
    text = "ada|a b|a b||normal\nada|a b|physics||normal,+odd,x y\n"
    assert associations.read(text, "ada") == (Association("physics", frozenset({"normal"})),)


def test_another_users_accounts_are_not_taken() -> None:
    assert associations.read("bob|physics|physics||normal\n", "ada") == ()


@pytest.mark.parametrize("text", ["garbage\n", "ada|physics|physics\n"])
def test_what_sacctmgr_never_prints_is_refused(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        associations.read(text, "ada")


def test_whether_accounts_are_kept_is_read_from_slurms_settings() -> None:
    assert associations.accounting(CONFIG) == Accounting("dgx", is_enabled=True)
    none = "AccountingStorageType   = accounting_storage/none\nClusterName             = dgx\n"
    assert associations.accounting(none) == Accounting("dgx", is_enabled=False)
    with pytest.raises(UnreadableOutput):
        associations.accounting("garbage\n")


class Client:
    """Stands in for the way to Slurm."""

    def __init__(self, *, is_enabled: bool) -> None:
        self.is_enabled = is_enabled
        self.calls: list[str] = []
        self.failure: CommandFailed | None = None

    async def accounting(self) -> Accounting:
        self.calls.append("scontrol")
        return Accounting("dgx", self.is_enabled)

    async def associations(self, username: str, cluster: str) -> tuple[Association, ...]:
        self.calls.append(f"sacctmgr {username} {cluster}")
        if self.failure:
            raise self.failure
        return (Association("physics", frozenset({"normal"})),)


def ask(client: Client, *users: str) -> list[object]:
    async def all_of_them() -> list[object]:
        cache = AssociationCache(client)  # type: ignore[arg-type]
        asking = (cache.of(user) for user in users)
        return list(await asyncio.gather(*asking, return_exceptions=True))

    return asyncio.run(all_of_them())


def test_each_user_is_asked_for_once() -> None:
    client = Client(is_enabled=True)
    ask(client, "ada", "ada", "bob")
    assert client.calls == ["scontrol", "sacctmgr ada dgx", "sacctmgr bob dgx"]


def test_without_an_accounting_nobody_is_asked_for() -> None:
    client = Client(is_enabled=False)
    assert ask(client, "ada", "bob") == [(), ()]
    assert client.calls == ["scontrol"]


def test_a_database_that_fails_is_not_asked_by_each_form_anew() -> None:
    client = Client(is_enabled=True)
    client.failure = CommandFailed("sacctmgr failed.")

    async def twice() -> None:
        cache = AssociationCache(client)  # type: ignore[arg-type]
        for _ in range(2):
            with pytest.raises(CommandFailed):
                await cache.of("ada")

    asyncio.run(twice())
    assert client.calls == ["scontrol", "sacctmgr ada dgx"]
