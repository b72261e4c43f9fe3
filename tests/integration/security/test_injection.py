"""Texts that would mean something to a shell, Slurm, the directory or a page."""

import json
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.hostile import inputs as hostile
from tests.instance import USERS, Instance
from tests.visitor import Visitor

MARK = Path("/tmp")  # noqa: S108  # where an injected command would leave its mark
NAME = USERS[1]


@pytest.fixture(scope="module")
def user(portal: Instance) -> Any:
    """A user without a session."""
    user = Visitor(portal, NAME)
    user.log_in()
    user.leave()
    yield user
    user.leave()
    user.close()


def lures() -> list[str]:
    """Texts with a command that would be seen."""
    file = MARK / f"injected-{uuid.uuid4().hex}"
    commands = [f"touch {file}", f"$(touch {file})", f"`touch {file}`", f"'; touch {file}; '"]
    lines = [f"1\n{command}\n" for command in commands[:1]]
    return [*commands, *lines, f"2\n#SBATCH --wrap='touch {file}'", *hostile.LURES, "x" * 100_000]


@pytest.mark.parametrize(
    "key", ["gpus", "hours", "partition", "gpu_type", "account", "cmd", "name"]
)
def test_no_option_of_the_rest_api_reaches_a_script(
    portal: Instance, user: Visitor, key: str
) -> None:
    for lure in lures():
        body = json.dumps({key: lure}).encode()
        answer = user.api("POST", f"/users/{NAME}/server", content=body)
        assert 400 <= answer.status_code < 500, (key, lure[:50], answer.text)
    assert portal.jobs(user=NAME) == []
    assert not list(MARK.glob("injected-*"))


@pytest.mark.parametrize("key", ["gpus", "hours", "partition", "gpu_type", "account"])
def test_no_field_of_the_form_or_of_a_link_reaches_a_script(
    portal: Instance, user: Visitor, key: str
) -> None:
    fields = {"gpus": "0", "hours": "1"}
    for lure in (one for one in lures() if one.isprintable() or "\n" in one or "\r" in one):
        answer = user.http.get("/hub/spawn", params={**fields, key: lure[:2000]})
        assert answer.status_code in (200, 400), lure[:50]
        form = {**fields, key: lure, "_xsrf": user.xsrf()}
        answer = user.http.post(f"/hub/spawn/{NAME}", data=form)
        assert answer.status_code in (200, 400), (lure[:50], answer.status_code)
        assert f'value="{lure}"' not in answer.text or "<" not in lure
    assert portal.jobs(user=NAME) == []
    assert not list(MARK.glob("injected-*"))


@pytest.mark.parametrize("lure", ["a b", "a\nb", "../x", "$(id)", "<b>x</b>", "%0a", "x" * 300])
def test_no_name_of_a_server_reaches_a_script_or_a_page(
    portal: Instance, user: Visitor, lure: str
) -> None:
    answer = user.api("POST", f"/users/{NAME}/servers/{quote(lure, safe='')}", json={"gpus": "no"})
    assert 400 <= answer.status_code < 500
    assert portal.jobs(user=NAME) == []
    assert "<b>x</b>" not in user.http.get("/hub/home").text


@pytest.mark.parametrize(
    "path", ["/hub/error/404?url=", "/hub/login?next=", "/hub/login?username="]
)
def test_no_address_is_shown_as_html(user: Visitor, path: str) -> None:
    lure = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
    nobody = Visitor(user.instance, NAME)
    for one in (user, nobody):
        assert "<script>alert(1)" not in one.http.get(path + lure).text
    nobody.close()


@pytest.mark.parametrize(
    "name",
    [
        "*",
        f"{NAME})(uid=*",
        f"{NAME})(|(uid=*",
        f"*)(uid={NAME}))(|(uid=*",
        f"{NAME},ou=people",
        f"{NAME}\x00x",
        f"{NAME}\\2a",
        f"uid={NAME}",
        f"{NAME}\r\nuid: admin",
    ],
)
def test_no_name_at_the_login_reaches_the_directory(portal: Instance, name: str) -> None:
    visitor = Visitor(portal, name)
    for password in ("portal", "*", ""):
        assert visitor.log_in(password).status_code in (401, 403, 429), name
    assert visitor.api("GET", "/user").status_code == 403
    visitor.close()
