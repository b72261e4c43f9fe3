"""Guessing passwords at the supplied directory itself, past the portal's login page."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from dsportal.authentication.connection import DirectoryConnection, LdapAccess
from dsportal.authentication.errors import Locked
from tests.integration.authentication import supplied as role
from tests.integration.authentication.conftest import MakeAuthenticator
from tests.integration.authentication.logins import log_in, refusal
from tests.integration.authentication.slapd import BASE, PASSWORD, USER_BASE
from tests.integration.authentication.supplied import PEOPLE, ROLE, Supplied
from tests.waiting import until

POLICY = (ROLE / "templates/people.ldif.j2").read_text(encoding="utf-8")
GUESSES = int(re.findall(r"^pwdMaxFailure: (\d+)$", POLICY, re.M)[0])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supplied]:
    with role.running(tmp_path_factory.mktemp("supplied")) as running:
        yield running


@pytest.fixture
def connection(directory: Supplied) -> Iterator[DirectoryConnection]:
    """A connection that anybody who reaches the directory can have."""
    opened = DirectoryConnection(directory.url, LdapAccess((directory.url,), False, "", 2, 5))
    yield opened
    opened.close()


def person(name: str) -> str:
    return f"uid={name},{USER_BASE}"


def guess_until_locked(connection: DirectoryConnection, name: str) -> int:
    """Try wrong passwords; say how many were answered."""
    for number in range(2 * GUESSES):
        try:
            assert not connection.bind(person(name), f"wrong-{number}")
        except Locked:
            return number
    return 2 * GUESSES


def test_after_some_guesses_even_the_right_password_is_not_told(
    connection: DirectoryConnection,
) -> None:
    assert connection.bind(person(PEOPLE[0]), PASSWORD)
    assert guess_until_locked(connection, PEOPLE[0]) == GUESSES
    with pytest.raises(Locked):
        connection.bind(person(PEOPLE[0]), PASSWORD)
    # It is the one account only.
    assert connection.bind(person(PEOPLE[1]), PASSWORD)


@pytest.mark.parametrize("password", [PASSWORD, "overlays", " "])
def test_nobody_is_the_one_who_counts(connection: DirectoryConnection, password: str) -> None:
    assert not connection.bind(f"cn=overlays,{BASE}", password)


def test_nobody_reads_how_often_somebody_failed(connection: DirectoryConnection) -> None:
    assert not connection.bind(person(PEOPLE[1]), "wrong")
    (entry,) = connection.search(
        person(PEOPLE[1]), "(uid=*)", ["uid", "pwdFailureTime"], only_base=True
    )
    assert entry.texts("uid") == [PEOPLE[1]]
    assert entry.texts("pwdFailureTime") == []


@pytest.mark.parametrize(
    ("new", "status"),
    # 19: constraintViolation, RFC 4511. The first takes bcrypt a moment, "$2b$31$" days.
    [("{CRYPT}$2b$04$abcdefghijklmnopqrstuu4T826PRnz0Hu6YlprUuxkZxOOj5Fw5S", 19), (PASSWORD, 0)],
    ids=["a hash", "a password"],
)
def test_nobody_chooses_how_long_a_guess_takes(directory: Supplied, new: str, status: int) -> None:
    argv = ["/usr/bin/ldapmodify", "-x", "-H", directory.url, "-D", person(PEOPLE[1])]
    change = (
        f"dn: {person(PEOPLE[1])}\nchangetype: modify\nreplace: userPassword\nuserPassword: {new}\n"
    )
    done = subprocess.run(
        [*argv, "-w", PASSWORD],
        input=change,
        text=True,
        check=False,
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == status, done.stderr


def test_a_lock_ends_by_itself(directory: Supplied, connection: DirectoryConnection) -> None:
    directory.lock_for(seconds=2)
    assert guess_until_locked(connection, PEOPLE[1]) <= GUESSES

    def taken() -> bool:
        try:
            return connection.bind(person(PEOPLE[1]), PASSWORD)
        except Locked:
            return False

    until(taken, seconds=20, what="the lock has ended")
    # The right password has wiped the slate.
    assert not connection.bind(person(PEOPLE[1]), "wrong")
    assert connection.bind(person(PEOPLE[1]), PASSWORD)


def test_who_logs_in_meanwhile_reads_of_the_lock(
    directory: Supplied, connection: DirectoryConnection, authenticator: MakeAuthenticator
) -> None:
    directory.lock_for(seconds=60)
    portal = authenticator(directory.url, contact="Ada")
    assert log_in(portal, PEOPLE[2]) is not None
    guess_until_locked(connection, PEOPLE[2])
    error = refusal(portal, PEOPLE[2])
    assert error.status_code == 429
    assert str(error.log_message).startswith("Your account is locked")
