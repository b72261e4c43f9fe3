"""What `session.extensions` names is in a session's page and server, and nothing else is."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from dsportal.session.page.extensions import EXTENSIONS
from tests import faults
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

# An address of each server part; the others have none.
SERVER_PARTS = {
    "git": "/git/settings",
    "lsp": "/lsp/status",
    "code_formatter": "/jupyterlab_code_formatter/formatters",
    "search": "/search/templates?query=rate",
}


@pytest.fixture(scope="module")
def sessions(portal: Instance) -> Iterator[dict[bool, Visitor]]:
    """A session with all of them, and one that has none: the setting counts as it starts."""
    with ExitStack() as running:
        with faults.setting(portal, "[session]", "[session]\nextensions = []"):
            without = running.enter_context(session_of(portal, USERS[0]))
        yield {False: without, True: running.enter_context(session_of(portal, USERS[1]))}


def switched_off(user: Visitor) -> set[str]:
    """Return what JupyterLab's page is told not to start."""
    page = user.session("GET", "/lab").raise_for_status().text
    config = re.search(r'<script id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert config
    return set(json.loads(config[1])["disabledExtensions"])


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_is_in_the_page_where_it_is_named(
    sessions: dict[bool, Visitor], name: str, is_on: bool
) -> None:
    extension, off = EXTENSIONS[name], switched_off(sessions[is_on])
    assert (extension.page in off) is not is_on
    # One that is there may itself take the place of a part of JupyterLab's.
    assert is_on or set(extension.of_lab) <= off


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("name", SERVER_PARTS)
def test_its_server_part_answers_where_it_is_named(
    sessions: dict[bool, Visitor], name: str, is_on: bool
) -> None:
    answer = sessions[is_on].session("GET", SERVER_PARTS[name])
    assert (answer.status_code != 404) is is_on, answer.text


def test_each_server_part_is_asked_for() -> None:
    assert set(SERVER_PARTS) == {name for name, one in EXTENSIONS.items() if one.server}
