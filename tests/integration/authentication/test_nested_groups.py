"""Groups of groups, in a directory that does not follow them by itself.

slapd does not know Active Directory's rule for it: see test_active_directory.py.
"""

from collections.abc import Iterator

import pytest

from dsportal.authentication import membership
from jupyterhub_gpu_slurm.options.allowance import Allowance, combine
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, reader
from tests.integration.authentication.slapd import GROUP_BASE, USER_BASE, Slapd

LONGEST = 12


def group(name: str, *members: str, kind: str = "groupOfNames") -> str:
    attribute = "uniqueMember" if kind == "groupOfUniqueNames" else "member"
    listed = "".join(f"{attribute}: {dn}\n" for dn in members)
    return f"dn: cn={name},{GROUP_BASE}\nobjectClass: {kind}\ncn: {name}\n{listed}"


def in_groups(name: str) -> str:
    return f"cn={name},{GROUP_BASE}"


@pytest.fixture(scope="module", autouse=True)
def nested(directory: Slapd) -> Iterator[None]:
    """Groups above those that user3 and admin1 are in, two that hold each other, and a tower."""
    user3 = f"uid=user3,{USER_BASE}"
    entries = [
        group("team", user3),
        group("department", in_groups("team"), kind="groupOfUniqueNames"),
        group("institute", in_groups("department")),
        group("gamma", in_groups("unix-primary")),
        group("circle-a", in_groups("circle-b"), user3),
        group("circle-b", in_groups("circle-a"), in_groups("circle-b")),
        group("others", in_groups("vision")),
        group("level-0", f"uid=admin1,{USER_BASE}"),
        *(group(f"level-{n}", in_groups(f"level-{n - 1}")) for n in range(1, LONGEST + 1)),
        group("wide", f"uid=user4,{USER_BASE}"),
        *(group(f"wide-{n}", in_groups("wide")) for n in range(120)),
        group("top", in_groups("wide-7"), in_groups("wide-119")),
    ]
    directory.change("\n".join(entries), "ldapadd")
    yield
    names = ["team", "department", "institute", "gamma", "circle-a", "circle-b", "others", "wide"]
    names += [f"level-{n}" for n in range(LONGEST + 1)] + [f"wide-{n}" for n in range(120)]
    directory.change(
        "\n".join(f"dn: {in_groups(name)}\nchangetype: delete\n" for name in [*names, "top"])
    )


@pytest.mark.parametrize("with_reader", [False, True])
def test_groups_of_groups_count(
    authenticator: MakeAuthenticator, with_reader: bool, caplog: pytest.LogCaptureFixture
) -> None:
    user = log_in(authenticator(**reader(with_reader)), "user3")
    assert user is not None
    assert user["groups"] == [
        *("circle-a", "circle-b", "department", "gamma", "institute", "team", "unix-primary")
    ]
    # A circle is not climbed again and again.
    assert "are not followed" not in caplog.text


def test_groups_of_groups_do_not_count_where_the_site_says_so(
    authenticator: MakeAuthenticator,
) -> None:
    user = log_in(authenticator(nested_groups=False), "user3")
    assert user is not None
    assert user["groups"] == ["circle-a", "team", "unix-primary"]


def test_an_outer_group_lets_in_makes_an_admin_and_limits(
    authenticator: MakeAuthenticator,
) -> None:
    used = authenticator(allowed_groups={"institute"}, admin_groups={"department"})
    user = log_in(used, "user3")
    assert user is not None
    assert user["admin"] is True
    limits = {"institute": Allowance(max_gpus=2), "others": Allowance(max_gpus=8)}
    assert combine(Allowance(max_gpus=1), limits, user["groups"]).max_gpus == 2


def test_a_tower_of_groups_is_not_climbed_to_the_end(
    authenticator: MakeAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    user = log_in(authenticator(), "admin1")
    assert user is not None
    levels = [name for name in user["groups"] if name.startswith("level-")]
    assert len(levels) == membership._MOST_LEVELS + 1
    assert f"level-{LONGEST}" not in levels
    assert "are not followed: more than 10 levels" in caplog.text


def test_a_crowd_of_groups_is_not_followed_to_the_end(
    authenticator: MakeAuthenticator,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    everything = log_in(authenticator(), "user4")
    monkeypatch.setattr(membership, "_MOST_GROUPS", 100)
    first = log_in(authenticator(), "user4")
    assert everything is not None
    assert first is not None
    assert "top" in everything["groups"]
    assert "top" not in first["groups"]
    assert "or 100 groups" in caplog.text
