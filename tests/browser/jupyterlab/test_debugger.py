"""JupyterLab's debugger in a notebook, by clicking; and somebody else on the node meanwhile."""

import json
import pwd
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.keyboard import arrow_to, press, tab_to
from tests.browser.lab import open_lab
from tests.hostile import debug_client
from tests.instance import USERS, Instance
from tests.network import sockets
from tests.processes import running
from tests.visitor import Visitor, session_of
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.same_page]

STRANGER, USER = USERS[3:5]
CODE = "def double(number):\n    result = 2 * number\n    return result\n\nprint(double(21))"
FAILING = "def half(number):\n    return number / 0\n\nprint(half(21))"
OWN_USE = "import debugpy; print(debugpy.listen(('127.0.0.1', 0))[1])"


def remove_notebooks() -> None:
    for file in Path(pwd.getpwnam(USER).pw_dir).glob("Untitled*.ipynb"):
        file.unlink()


@pytest.fixture(scope="module")
def owner(portal: Instance) -> Iterator[Visitor]:
    remove_notebooks()
    with session_of(portal, USER) as visitor:
        yield visitor
    remove_notebooks()


@pytest.fixture
def user(owner: Visitor) -> Visitor:
    """A user with a session, for all tests of this module but those that stop it."""
    if owner.server() is None:
        owner.start_and_wait(gpus=0)
    return owner


@pytest.fixture
def stopped(portal: Instance, user: Visitor, page: Page) -> Page:
    """A notebook whose cell has stopped at its second line."""
    open_lab(page, portal, user.name)
    page.get_by_role("button", name=re.compile("^Python 3")).first.click()
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible(timeout=60_000)
    cell = page.locator(".jp-Notebook-cell .cm-content").first
    cell.click()
    page.keyboard.insert_text(CODE)
    page.get_by_role("button", name="Enable Debugger").click()
    expect(page.get_by_role("button", name="Disable Debugger")).to_be_visible()
    beside_line(page, 2).click()
    expect(page.get_by_role("region", name="Breakpoints Section")).to_contain_text("2")
    cell.click()
    page.keyboard.press("Shift+Enter")
    expect(variable(page, "number: 21")).to_be_visible()
    return page


def beside_line(page: Page, number: int) -> Locator:
    # The first one of the gutter only gives it its width.
    cell = page.locator(".jp-Notebook-cell").first
    return cell.locator(".cm-breakpoint-gutter .cm-gutterElement").nth(number)


def variable(page: Page, shown: str) -> Locator:
    variables = page.get_by_role("region", name="Variables Section")
    return variables.get_by_role("treeitem", name=shown, exact=True)


def adapters() -> set[int]:
    return {process.pid for process in running("debug_adapter.py", user=USER)}


def attacked() -> dict[int, str | None]:
    """Give what each of the user's ports let the stranger evaluate."""
    uid = str(pwd.getpwnam(USER).pw_uid)
    code = Path(debug_client.__file__).read_text()
    argv = ["/usr/sbin/runuser", "-u", STRANGER, "--", "/usr/bin/python3", "-c", code, uid]
    asked = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    return {int(port): said for port, said in json.loads(asked.stdout).items()}


def test_a_cell_is_debugged_by_clicking(
    stopped: Page, photograph: Callable[[Page, str], None]
) -> None:
    photograph(stopped, "debugger")
    expect(stopped.get_by_role("region", name="Callstack Section")).to_contain_text("double")
    stopped.get_by_role("button", name="Next (F10)").click()
    expect(variable(stopped, "result: 42")).to_be_visible()
    stopped.get_by_role("button", name="Continue (F9)").click()
    expect(stopped.locator(".jp-OutputArea-output").first).to_have_text(re.compile("42"))


def test_a_cell_is_debugged_by_keyboard(portal: Instance, user: Visitor, page: Page) -> None:
    open_lab(page, portal, user.name)
    press(page, page.get_by_role("button", name=re.compile("^Python 3")).first)
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible(timeout=60_000)
    page.keyboard.press("Escape")
    # One stop for all buttons of a toolbar, whose arrows lead on.
    page.keyboard.press("Shift+Tab")
    arrow_to(page, "ArrowRight", page.get_by_role("button", name="Enable Debugger"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Disable Debugger")).to_be_visible()
    page.keyboard.press("Control+Shift+C")
    page.keyboard.type("Breakpoints on exception")
    expect(page.locator(".lm-CommandPalette-item.lm-mod-active")).to_contain_text("exception")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Ok", exact=True).wait_for()
    tab_to(page, page.get_by_role("listbox"))
    page.keyboard.press("End")
    press(page, page.get_by_role("button", name="Ok", exact=True))
    tab_to(page, page.get_by_label("Code Cell Content"))
    page.keyboard.press("Enter")
    page.keyboard.insert_text(FAILING)
    page.keyboard.press("Control+Enter")
    expect(variable(page, "number: 21")).to_be_visible()
    page.keyboard.press("F9")
    expect(page.locator(".jp-OutputArea-output").first).to_contain_text("ZeroDivisionError")


def test_a_stranger_on_the_node_gets_nothing(
    portal: Instance, user: Visitor, stopped: Page
) -> None:
    job = portal.jobs(user=USER)[0]
    expect(variable(stopped, "number: 21")).to_be_visible()
    assert attacked() == {port: None for port in sockets.tcp_ports_of_job(USER, job)}
    assert len(sockets.tcp_ports_of_job(USER, job)) == 1
    assert sockets.of_processes(adapters()) == []
    # The same stranger with a debugger whose user has opened a port.
    kernel = user.open_kernel()
    port = int(user.run_in(kernel, OWN_USE).split()[-1])
    assert attacked()[port] == str(pwd.getpwnam(USER).pw_uid)


def test_restarting_the_kernel_ends_it(stopped: Page) -> None:
    before = adapters()
    assert len(before) == 1
    stopped.get_by_role("button", name=re.compile("^Restart the kernel$")).click()
    stopped.get_by_role("button", name="Confirm Kernel Restart").click()
    until(lambda: not before & adapters(), seconds=30, what="the adapter has ended")
    expect(stopped.get_by_text("Python 3 | Idle")).to_be_visible(timeout=60_000)


def test_stopping_the_session_ends_it(user: Visitor, stopped: Page) -> None:
    assert len(adapters()) == 1
    expect(variable(stopped, "number: 21")).to_be_visible()
    user.stop()
    until(lambda: not adapters(), seconds=30, what="the adapter has ended with the session")
    stopped.close()
