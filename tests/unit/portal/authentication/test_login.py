"""What becomes of a login, and of an account that is looked at again; a stand-in directory."""

import asyncio
import threading
import time
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.web import HTTPError

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication import ldap
    from dsportal.authentication.ldap import DirectoryAuthenticator

from dsportal.authentication.directory import DirectoryAccount
from dsportal.authentication.errors import DirectoryError, LimitExceeded, Locked, Refused
from dsportal.authentication.words import CLOSED

ADA = DirectoryAccount("ada", ("ml", "staff"))
PASSWORD = "right"
GROUPS = {"allowed_groups": {"staff"}, "admin_groups": {"wheel"}, "contact": "help@example.org"}


@dataclass
class StandIn:
    """Answers as it is told, once it may, or after a while; remembers what it was asked."""

    says: DirectoryAccount | Exception | None = ADA
    seconds: float = 0.0
    may_answer: threading.Event | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)

    def log_in(self, name: str, password: str, deadline: float) -> DirectoryAccount | None:
        self.asked.append((name, password))
        return self._answer(deadline)

    def look_up(self, name: str, deadline: float) -> DirectoryAccount | None:
        self.asked.append((name,))
        return self._answer(deadline)

    def _answer(self, deadline: float) -> DirectoryAccount | None:
        self.deadlines.append(deadline - time.monotonic())
        time.sleep(self.seconds)
        assert self.may_answer is None or self.may_answer.wait(20)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.fixture
def directory() -> StandIn:
    return StandIn()


@pytest.fixture
def authenticator(directory: StandIn, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(ldap, "refuse_unfit", lambda name, minimum_uid: None)
    made: Any = DirectoryAuthenticator(
        lookup_dn_search_user="cn=reader", realm="example.org", login_timeout=7.0, **GROUPS
    )
    made._directory = directory
    made.log.propagate = True
    return made


def login(authenticator: Any, name: str = "ada", password: str = PASSWORD) -> Any:
    data = {"username": name, "password": password}
    return asyncio.run(authenticator.authenticate(None, data))


def refresh(authenticator: Any, handler: Any = None) -> Any:
    return asyncio.run(authenticator.refresh_user(SimpleNamespace(name="ada"), handler))


# --- a login ---


def test_a_login_gives_the_name_the_groups_and_the_rights(
    authenticator: Any, directory: StandIn
) -> None:
    assert login(authenticator) == {"name": "ada", "admin": False, "groups": ["ml", "staff"]}
    assert directory.asked == [("ada", "right")]
    assert 5 < directory.deadlines[0] <= 7
    directory.says = DirectoryAccount("ada", ("wheel",))
    assert login(authenticator)["admin"] is True


def test_the_name_is_the_directorys(authenticator: Any, directory: StandIn) -> None:
    directory.says = DirectoryAccount("ada.lovelace", ())
    assert login(authenticator)["name"] == "ada.lovelace"


@pytest.mark.parametrize("typed", ["ada@example.org", "ADA"])
def test_what_is_typed_becomes_the_one_name(
    authenticator: Any, directory: StandIn, typed: str
) -> None:
    login(authenticator, typed)
    assert directory.asked == [("ada", "right")]


@pytest.mark.parametrize(
    ("name", "password"), [("ada", ""), ("", "right"), ("a/b", "right"), ("-x", "right")]
)
def test_what_can_be_nobody_is_not_asked_for(
    authenticator: Any, directory: StandIn, name: str, password: str
) -> None:
    assert login(authenticator, name, password) is None
    assert directory.asked == []


def test_nothing_typed_at_all(authenticator: Any, directory: StandIn) -> None:
    assert asyncio.run(authenticator.authenticate(None, {})) is None
    assert directory.asked == []


def test_a_wrong_password_is_no_login_and_no_fault(authenticator: Any, directory: StandIn) -> None:
    directory.says = None
    assert login(authenticator) is None


@pytest.mark.parametrize(
    ("refusal", "status"), [(Refused("closed", CLOSED), 403), (Locked(), 429)], ids=["no", "locked"]
)
def test_a_clear_no_is_said_with_whom_to_ask(
    authenticator: Any, directory: StandIn, refusal: Refused, status: int
) -> None:
    directory.says = refusal
    with pytest.raises(HTTPError) as raised:
        login(authenticator)
    assert raised.value.status_code == status
    assert "ask help@example.org" in str(raised.value.log_message)


def test_a_no_without_words_tells_nothing(
    authenticator: Any, directory: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    directory.says = Refused("two entries")
    assert login(authenticator) is None
    assert "two entries" in caplog.text


def test_a_directory_that_does_not_answer_is_not_the_users_fault(
    authenticator: Any, directory: StandIn
) -> None:
    directory.says = DirectoryError("refused")
    with pytest.raises(HTTPError) as raised:
        login(authenticator)
    assert raised.value.status_code == 503
    assert "is not responding" in str(raised.value.log_message)


def test_one_that_is_slow_is_given_up_in_time(authenticator: Any, directory: StandIn) -> None:
    directory.seconds, authenticator.login_timeout = 0.5, 0.05
    with pytest.raises(HTTPError) as raised:
        login(authenticator)
    assert raised.value.status_code == 503


def test_a_slow_directory_does_not_hold_up_the_hub(authenticator: Any, directory: StandIn) -> None:
    directory.may_answer = may_answer = threading.Event()

    async def others() -> Any:
        data = {"username": "ada", "password": PASSWORD}
        asking = asyncio.create_task(authenticator.authenticate(None, data))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not asking.done()
        may_answer.set()
        return await asking

    assert asyncio.run(others())["name"] == "ada"


def test_another_users_spelling_is_refused(
    authenticator: Any, directory: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, minimum_uid: int) -> None:
        raise Refused(f"the system calls {name} otherwise")

    monkeypatch.setattr(ldap, "refuse_unfit", refuse)
    assert login(authenticator) is None
    directory.says = None
    assert login(authenticator) is None


# --- who is let in ---


@pytest.mark.parametrize(
    ("groups", "is_in"), [(["staff"], True), (["wheel"], True), (["ml"], False), ([], False)]
)
def test_the_groups_let_in(authenticator: Any, groups: list[str], is_in: bool) -> None:
    asking = authenticator.check_allowed("ada", {"groups": groups})
    if is_in:
        assert asyncio.run(asking) is True
        return
    with pytest.raises(HTTPError) as raised:
        asyncio.run(asking)
    assert raised.value.status_code == 403
    assert "ask help@example.org for access" in str(raised.value.log_message)


@pytest.mark.parametrize("option", ["allowed_users", "admin_users"])
def test_so_does_a_name(authenticator: Any, option: str) -> None:
    setattr(authenticator, option, {"ada"})
    assert asyncio.run(authenticator.check_allowed("ada", None)) is True
    assert authenticator.auth_model("ada", [])["admin"] is (option == "admin_users")
    assert authenticator.auth_model("bob", [])["admin"] is False


# --- an account that is looked at again ---


def test_rights_follow_the_directory(authenticator: Any, directory: StandIn) -> None:
    directory.says = DirectoryAccount("ada", ("staff", "wheel"))
    assert refresh(authenticator) == {
        "name": "ada",
        "admin": True,
        "groups": ["staff", "wheel"],
    }
    assert directory.asked == [("ada",)]


@pytest.mark.parametrize("says", [DirectoryAccount("ada", ("ml",)), Refused("closed")], ids=repr)
def test_who_may_no_more_is_out(authenticator: Any, directory: StandIn, says: Any) -> None:
    directory.says = says
    assert refresh(authenticator) is False


def test_who_may_no_more_starts_nothing(authenticator: Any) -> None:
    assert (authenticator.refresh_pre_spawn, authenticator.auth_refresh_strict) == (True, True)


def test_a_silent_directory_puts_nobody_out_and_is_left_alone(
    authenticator: Any, directory: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.says = DirectoryError("no answer")
    assert refresh(authenticator) is True
    assert refresh(authenticator) is True
    assert len(directory.asked) == 1
    later = time.monotonic() + authenticator.refresh_pause + 1
    monkeypatch.setattr(ldap, "time", SimpleNamespace(monotonic=lambda: later))
    refresh(authenticator)
    assert len(directory.asked) == 2


def test_one_account_with_too_many_groups_puts_off_nobody_elses_look(
    authenticator: Any, directory: StandIn
) -> None:
    """Anybody who may make groups could have kept the closed accounts of all others open."""
    directory.says = LimitExceeded("search under ou=groups: sizeLimitExceeded")
    assert refresh(authenticator) is True
    directory.says = Refused("the account is closed")
    assert refresh(authenticator) is False


def test_a_slow_one_neither(authenticator: Any, directory: StandIn) -> None:
    directory.seconds, authenticator.refresh_timeout = 0.3, 0.05
    assert refresh(authenticator) is True


def test_without_a_reader_nothing_is_looked_up(authenticator: Any, directory: StandIn) -> None:
    authenticator._lookup_account = None
    assert refresh(authenticator) is True
    assert directory.asked == []


def test_jupyterhub_finds_what_it_reads_of_a_handler(authenticator: Any) -> None:
    handler = SimpleNamespace()
    refresh(authenticator, handler)
    assert handler._token_authenticated is False
    handler._token_authenticated = True
    refresh(authenticator, handler)
    assert handler._token_authenticated is True


def test_a_closed_account_cannot_crowd_out_its_own_refusal(
    authenticator: Any, directory: StandIn
) -> None:
    """Many requests at once made the looks late, and a directory that is late changes nothing."""
    directory.says, directory.seconds = Refused("the account is closed"), 0.05
    authenticator.refresh_timeout = 20

    async def crowd() -> list[Any]:
        mallory = SimpleNamespace(name="mallory")
        return await asyncio.gather(*(authenticator.refresh_user(mallory) for _ in range(200)))

    assert set(asyncio.run(crowd())) == {False}
    assert directory.asked == [("mallory",)]


@pytest.mark.parametrize(
    "data",
    [None, "ada", 1, [], {"username": 1}, {"password": ["x"]}, {"password": "x" * 300_000}],
    ids=lambda data: repr(data)[:30],
)
def test_what_is_no_form_is_the_senders_fault(
    authenticator: Any, directory: StandIn, data: object
) -> None:
    """JupyterHub's API hands on any JSON that a stranger sends, and logs what fails at it."""
    with pytest.raises(HTTPError) as refused:
        asyncio.run(authenticator.get_authenticated_user(SimpleNamespace(), data))
    assert refused.value.status_code == 400
    assert directory.asked == []
