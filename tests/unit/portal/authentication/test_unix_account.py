"""Which accounts of the machine are somebody's who may log in."""

import grp
import os
import pwd

import pytest

from dsportal.authentication.errors import Refused
from dsportal.authentication.unix_account import refuse_unfit
from jupyterhub_gpu_slurm.options.unix_groups import known_groups_of


def test_root_is_refused() -> None:
    with pytest.raises(Refused, match="root has the number 0, below minimum_uid = 1000"):
        refuse_unfit("root", 1000)


def test_the_lowest_number_is_let_in_and_one_below_is_not() -> None:
    nobody = pwd.getpwnam("nobody")
    refuse_unfit("nobody", nobody.pw_uid)
    with pytest.raises(Refused, match="below minimum_uid"):
        refuse_unfit("nobody", nobody.pw_uid + 1)


def test_who_is_unknown_is_left_to_the_first_start() -> None:
    refuse_unfit("no-such-user", 1000)
    with pytest.raises(KeyError):
        known_groups_of("no-such-user")


def test_the_name_service_may_write_a_name_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pwd.struct_passwd(("Jane.Doe", "x", 5000, 5000, "", "/", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    with pytest.raises(Refused, match="with capitals"):
        refuse_unfit("jane.doe", 1000)


def test_of_two_names_with_one_number_the_first_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm's jobs are the first's, and the reconciler ends those of a session of the second's."""
    names = ("jane", "jdoe")
    entries = {name: pwd.struct_passwd((name, "x", 5000, 5000, "", "/", "")) for name in names}
    monkeypatch.setattr(pwd, "getpwnam", entries.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entries["jane"])
    refuse_unfit("jane", 1000)
    with pytest.raises(Refused, match="jdoe has the number 5000 of jane"):
        refuse_unfit("jdoe", 1000)


def test_a_number_of_which_the_machine_knows_no_name_is_compared_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    service = pwd.struct_passwd(("svc", "x", 998, 998, "", "/", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda name: service)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(Refused, match="below minimum_uid"):
        refuse_unfit("svc", 1000)
    refuse_unfit("svc", 998)


def test_the_primary_group_counts_too() -> None:
    account = pwd.getpwuid(os.getuid())
    assert grp.getgrgid(account.pw_gid).gr_name in known_groups_of(account.pw_name)
