"""The launcher: a card for each thing that a session offers, and what each opens."""

import pwd
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

pytestmark = [pytest.mark.browser, pytest.mark.same_page]

USER = USERS[3]


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    """A user with a session, for all tests of this module."""
    with session_of(portal, USER) as user:
        yield user


@pytest.fixture
def home(portal: Instance, user: Visitor) -> Iterator[Path]:
    """The home of that user, without what an earlier test left."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    made = ["digits-logs", "Untitled.ipynb", "untitled.txt"]
    paths = [str(home / name) for name in made]
    portal.slurm("/bin/rm", "-rf", *paths, user=USER)
    yield home
    portal.slurm("/bin/rm", "-rf", *paths, user=USER)


STAND_IN = "DIGITS is not installed"


def section(page: Page, name: str) -> Locator:
    """Return a section of the launcher that is on the screen."""
    heading = page.get_by_role("heading", name=name, exact=True)
    return page.locator(".jp-Launcher-section:visible", has=heading)


def card(page: Page, kind: str, name: str) -> Locator:
    # A kernel's card has the same name twice: its picture's, and its own.
    words = re.compile(rf"^({re.escape(name)} ?){{1,2}}$")
    return section(page, kind).get_by_role("button", name=words)


def new_launcher(page: Page) -> None:
    page.get_by_role("button", name="New Launcher", exact=True).click()
    expect(card(page, "Other", "Terminal")).to_be_visible()


def test_each_card_opens_what_it_says(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    open_lab(page, portal, USER)
    kernels = [kernel["display_name"] for kernel in portal.settings["kernels"].values()]
    for name in ("Python 3", *kernels):
        expect(card(page, "Notebook", name)).to_be_visible()
    # One row of them; consoles are in the menu.
    expect(section(page, "Console")).to_have_count(0)
    expect(card(page, "Other", "TensorBoard")).to_be_visible()
    tools = ["DIGITS (stand-in)", "MLflow", "Model server", "VS Code"]
    expect(section(page, "Tools").get_by_role("button")).to_have_text(tools)
    photograph(page, "launcher")

    card(page, "Notebook", "Python 3").click()
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible()
    page.get_by_role("menuitem", name="File", exact=True).click()
    page.locator(".lm-Menu-itemLabel").get_by_text("New", exact=True).hover()
    page.get_by_role("menuitem", name="Console", exact=True).click()
    question = page.get_by_role("dialog").filter(has_text="Select Kernel")
    question.get_by_role("combobox").select_option(label="Python 3")
    question.get_by_role("button", name="Select Kernel").click()
    expect(page.locator(".jp-CodeConsole:visible")).to_be_visible()
    new_launcher(page)
    card(page, "Other", "Terminal").click()
    expect(page.locator(".jp-Terminal:visible")).to_be_visible()
    new_launcher(page)
    card(page, "Other", "Text File").click()
    expect(page.locator(".jp-FileEditor:visible")).to_be_visible()
    new_launcher(page)
    card(page, "Notebook", "New from Template").click()
    expect(page.get_by_role("dialog").get_by_role("radio").first).to_be_visible()
    page.keyboard.press("Escape")


@pytest.mark.usefixtures("home")
def test_cells_that_are_run_before_their_kernel_is_there_run_when_it_is(
    portal: Instance, page: Page
) -> None:
    open_lab(page, portal, USER)
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == "POST":
            held.append(route)
        else:
            route.fallback()

    page.route(re.compile(r"/api/sessions\b"), hold)
    card(page, "Notebook", "Python 3").click()
    notebook = page.locator(".jp-Notebook:visible")
    notebook.locator(".cm-content").click()
    page.keyboard.insert_text("answer = 6 * 7")
    page.keyboard.press("Shift+Enter")
    page.keyboard.insert_text("print(answer)")
    page.keyboard.press("Control+Enter")
    expect(notebook.locator(".jp-CodeCell .jp-InputPrompt")).to_have_text(["[*]:", "[*]:"])
    expect(notebook.locator(".jp-OutputArea-output")).to_have_count(0)
    (start,) = held
    start.continue_()
    expect(notebook.locator(".jp-OutputArea-output")).to_have_text("42")
    expect(notebook.locator(".jp-CodeCell .jp-InputPrompt")).to_have_text(["[1]:", "[2]:"])
    page.unroute_all()


def opened_by_key(page: Page) -> Page:
    """Open DIGITS from the launcher without a mouse."""
    context: BrowserContext = page.context
    with context.expect_page() as opened:
        card(page, "Tools", "DIGITS (stand-in)").press("Enter")
    return opened.value


def test_a_tool_opens_in_a_tab_and_is_stopped(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    open_lab(page, portal, USER)
    digits = opened_by_key(page)
    expect(digits.get_by_role("heading", name=STAND_IN)).to_be_visible()
    expect(digits.get_by_text(f"{home}/digits-logs")).to_be_visible()
    # A form is sent with the page's own address: the session hands it on.
    digits.get_by_role("button", name="New job").click()
    expect(digits.get_by_role("listitem")).to_have_text(re.compile("-job$"))
    assert len(list((home / "digits-logs").iterdir())) == 1

    # It is listed with what else runs, and stopped there.
    page.get_by_role("tab", name=re.compile("^Running")).click()
    running = page.get_by_role("treeitem", name="DIGITS")
    expect(running).to_be_visible()
    running.hover()
    running.get_by_title("Stop").click()
    expect(running).to_have_count(0)

    # What the browser asks for by itself starts nothing; the page does, and says why it cannot.
    assert digits.evaluate("fetch('headers').then(answer => answer.status)") == 503
    portal.slurm("/bin/rm", "-r", str(home / "digits-logs"), user=USER)
    portal.slurm("/usr/bin/touch", str(home / "digits-logs"), user=USER)
    digits.reload()
    expect(digits.get_by_role("heading", name="DIGITS (stand-in) is not running")).to_be_visible()
    expect(digits.get_by_role("alert")).to_have_text(re.compile("exit code 1"))
    expect(digits.get_by_text("FileExistsError")).to_be_visible()
    photograph(digits, "tool-failed")
    portal.slurm("/bin/rm", str(home / "digits-logs"), user=USER)
    digits.get_by_role("link", name="Try Again").press("Enter")
    expect(digits.get_by_role("heading", name=STAND_IN)).to_be_visible()
