"""A portal without LDAP: real Unix users of the machine log in at the deployed portal, through PAM.

The users are made here and removed again; the machine's own stay as they are.
"""

import pwd
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import faults
from tests.deploy.deploying import copied, deploy
from tests.instance import ADMIN, PREFIX, USERS, Instance, await_hub_log
from tests.visitor import Visitor

pytestmark = pytest.mark.timeout(900)

PASSWORD = "a password of its own"
ALLOWED, ADMINS = f"{PREFIX}-data-scientists", f"{PREFIX}-portal-admins"
MakeUser = Callable[..., Visitor]


def run(*argv: str, text: str = "") -> None:
    subprocess.run(argv, input=text, text=True, check=True, capture_output=True, timeout=60)


def deploy_portal(inventory: Path | str) -> None:
    deploy(inventory, "--stage", "portal").check_returncode()


@pytest.fixture(scope="module")
def without_ldap(portal: Instance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """The instance with the one setting that a site without LDAP has."""
    folder = copied(tmp_path_factory.mktemp("pam"))
    file = folder / "group_vars/all/main.yml"
    text = file.read_text(encoding="utf-8")
    assert text.count("\nportal_settings:\n") == 1
    setting = "\nportal_settings:\n  authentication: {method: pam}\n"
    file.write_text(text.replace("\nportal_settings:\n", setting), encoding="utf-8")
    try:
        deploy_portal(folder)
        faults.wait_for_hub(portal)
        yield portal
    finally:
        deploy_portal("test")
        faults.wait_for_hub(portal)
        forget_who_is_gone(portal)


def forget_who_is_gone(portal: Instance) -> None:
    """Have the hub forget whoever is no user of the machine any more."""
    admin = Visitor(portal, ADMIN)
    admin.log_in().raise_for_status()
    of_machine = {account.pw_name for account in pwd.getpwall()}
    for name in {user["name"] for user in admin.api("GET", "/users").json()} - of_machine:
        admin.api("DELETE", f"/users/{name}").raise_for_status()
    admin.close()


@pytest.fixture
def make_user(without_ldap: Instance) -> Iterator[MakeUser]:
    """Make Unix users with a password and a home; none is left, nor what they ran."""
    homes = str(Path(pwd.getpwnam(USERS[0]).pw_dir).parent)
    with ExitStack() as ending:

        def make(*options: str, group: str = ALLOWED) -> Visitor:
            name = f"t{secrets.token_hex(6)}"
            where = ["--create-home", "--base-dir", homes, "--shell", "/bin/bash"]
            run("/usr/sbin/useradd", *where, "--groups", group, *options, name)
            ending.callback(run, "/usr/sbin/userdel", "--remove", name)
            run("/usr/sbin/chpasswd", text=f"{name}:{PASSWORD}\n")
            visitor = Visitor(without_ldap, name)
            ending.callback(visitor.close)
            return visitor

        yield make


def is_logged_in(visitor: Visitor, password: str = PASSWORD) -> bool:
    """Say whether a login succeeds; it fails as a wrong password does, and no other way."""
    page = visitor.log_in(password)
    assert page.status_code in (200, 403), page.text
    if page.status_code == 403:
        assert "Invalid username or password" in page.text
    return page.status_code == 200


def test_a_user_of_the_machine_has_a_session_as_themselves(
    without_ldap: Instance, make_user: MakeUser
) -> None:
    user = make_user()
    assert is_logged_in(user)
    try:
        job_id = user.start_and_wait(gpus=1)
        uid = pwd.getpwnam(user.name).pw_uid
        assert without_ldap.job(job_id)["UserId"] == f"{user.name}({uid})"
        assert user.run("import os; print(os.getuid())").strip() == str(uid)
        assert user.http.get("/hub/admin").status_code == 403
    finally:
        user.leave()


def test_a_wrong_password_is_refused(make_user: MakeUser) -> None:
    user = make_user()
    assert not is_logged_in(user, "wrong")
    assert not is_logged_in(user, PASSWORD + "\n")
    assert is_logged_in(user)


@pytest.mark.parametrize(
    ("close", "reopen"),
    [
        (["/usr/sbin/usermod", "--lock"], ["/usr/sbin/usermod", "--unlock"]),
        (["/usr/bin/chage", "--expiredate=2020-01-01"], ["/usr/bin/chage", "--expiredate=-1"]),
        (["/usr/bin/chage", "--lastday=0"], ["/usr/bin/chage", "--lastday=-1"]),
    ],
    ids=["locked", "expired", "password must be changed"],
)
def test_a_closed_account_is_refused_with_the_right_password(
    make_user: MakeUser, close: list[str], reopen: list[str]
) -> None:
    user = make_user()
    run(*close, user.name)
    assert not is_logged_in(user)
    run(*reopen, user.name)
    assert is_logged_in(user)


def test_who_expires_while_logged_in_starts_nothing(
    without_ldap: Instance, make_user: MakeUser
) -> None:
    user = make_user()
    assert is_logged_in(user)
    run("/usr/bin/chage", "--expiredate=2020-01-01", user.name)
    assert user.start(gpus=0).status_code == 403
    assert without_ldap.jobs(user=user.name) == []
    await_hub_log(f"{user.name} is not let in any more: the account is closed")


def test_an_account_of_the_system_is_refused(make_user: MakeUser) -> None:
    service = make_user("--system")
    uid = pwd.getpwnam(service.name).pw_uid
    assert uid < 1000
    assert not is_logged_in(service)
    refusal = f"{service.name} has the number {uid}, below minimum_uid = 1000"
    await_hub_log(f"Login of '{service.name}' refused: {refusal}")


def test_root_is_refused(without_ldap: Instance) -> None:
    root = Visitor(without_ldap, "root")
    for password in ("", "root", PASSWORD):
        assert not is_logged_in(root, password)
    root.close()


def test_groups_of_the_machine_make_admins_for_as_long_as_they_have_them(
    make_user: MakeUser,
) -> None:
    user = make_user(group=ADMINS)
    assert is_logged_in(user)
    assert user.http.get("/hub/admin").status_code == 200
    run("/usr/sbin/usermod", "--groups", ALLOWED, user.name)
    assert is_logged_in(user)
    assert user.http.get("/hub/admin").status_code == 403


def test_who_is_in_no_group_of_the_portal_is_told_so(make_user: MakeUser) -> None:
    page = make_user(group="users").log_in(PASSWORD)
    assert page.status_code == 403
    assert "not allowed to use the portal" in page.text
