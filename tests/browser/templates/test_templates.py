"""A template is opened as the user's own copy."""

import pwd
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.lab import item, open_item, open_lab, wait_for_launcher, wait_for_notebook
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

pytestmark = [pytest.mark.browser, pytest.mark.same_page]

USER = USERS[2]
# The items of a side of the status bar that can be seen in part.
CUT_OFF = """
side => {
  const room = side.getBoundingClientRect();
  const isCut = box =>
    box.top < room.bottom && (box.left < room.left - 1 || box.right > room.right + 1);
  const items = [...side.children].filter(item => item.getBoundingClientRect().width);
  return items.filter(item => isCut(item.getBoundingClientRect())).map(item => item.textContent);
}
"""


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    """A user with a session, for all tests of this module."""
    with session_of(portal, USER) as user:
        yield user


@pytest.fixture
def home(portal: Instance, user: Visitor) -> Iterator[Path]:
    """The home of that user, without copies."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    made = [str(home / name) for name in ("work", "pytorch-mnist.ipynb", "sample.job")]
    portal.slurm("/bin/rm", "-rf", *made, user=USER)
    portal.slurm("/bin/mkdir", made[0], user=USER)
    yield home
    portal.slurm("/bin/rm", "-rf", *made, user=USER)


def test_a_list_of_templates_that_does_not_come_is_said(
    portal: Instance, home: Path, page: Page
) -> None:
    open_lab(page, portal, USER)
    page.route("**/portal/templates*", lambda route: route.abort())
    page.keyboard.press("Control+Shift+C")
    expect(page.locator("#modal-command-palette input")).to_be_focused()
    page.keyboard.type("New from Template…")
    page.keyboard.press("Enter")
    expect(page.get_by_text("templates cannot be listed")).to_be_visible()
    page.unroute("**/portal/templates*")
    page.reload()  # it stays until it is dismissed
    wait_for_launcher(page)


def test_a_template_is_chosen_in_the_launcher(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    open_lab(page, portal, USER)
    open_item(page, "work")
    page.get_by_role("menuitem", name="File", exact=True).click()
    page.get_by_role("menuitem", name="New Launcher").click()
    page.locator(".jp-LauncherCard", has_text="New from Template").last.click()

    dialog = page.get_by_role("dialog")
    groups = dialog.get_by_role("group")
    expect(groups.first).to_have_accessible_name("Start here")
    expect(groups.last).to_have_accessible_name("Cluster benchmarks")
    assert dialog.get_by_role("radio").count() > 8
    # Nothing is chosen beforehand.
    expect(dialog.get_by_role("radio", checked=True)).to_have_count(0)
    expect(dialog.get_by_role("button", name="Create")).to_be_disabled()
    # A line that is too long for it ends with an ellipsis.
    inner = dialog.locator(".portal-templates > div")
    assert inner.evaluate("list => list.scrollWidth <= list.clientWidth")
    cut = "all => all.map(one => one.scrollWidth > one.clientWidth)"
    assert any(dialog.locator("small").evaluate_all(cut))
    search = page.get_by_role("searchbox", name="Search templates").bounding_box()
    first = dialog.get_by_text("Start here", exact=True).bounding_box()
    assert search is not None
    assert first is not None
    assert first["y"] - search["y"] - search["height"] > 7
    photograph(page, "templates")

    # By keyboard alone: the search has the focus, and Enter leads to the first that fits.
    page.keyboard.type("storage")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("radio", checked=True)).to_be_focused()
    expect(page.locator(".jp-Notebook")).to_have_count(0)
    page.get_by_role("searchbox", name="Search templates").fill("pytorch mnist")
    expect(dialog.get_by_role("radio")).to_have_count(1)
    expect(dialog.get_by_role("button", name="Create")).to_be_disabled()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".jp-Notebook")).to_be_visible()
    # However much JupyterLab says at the bottom, what concerns the session is in sight.
    wait_for_notebook(page)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_in_viewport(ratio=1)
    # What has no room beside it is not there, rather than cut off.
    for width in (1280, 1000, 800):
        page.set_viewport_size({"width": width, "height": 800})
        for side in ("Left", "Right"):
            assert page.locator(f".jp-StatusBar-{side}").evaluate(CUT_OFF) == []
        expect(page.get_by_role("button", name="Stop", exact=True)).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 860})
    # It is shown for some seconds, and listed for longer.
    page.locator(".jp-Notification-Status").click()
    notices = page.locator(".jp-Notification-List")
    expect(notices).to_contain_text(re.compile(r"work/pytorch-mnist\.ipynb .*own copy"))
    page.keyboard.press("Escape")
    expect(page.get_by_text("PyTorch 2.13 | Idle")).to_be_visible()
    copy = home / "work/pytorch-mnist.ipynb"
    assert copy.owner() == USER
    expect(page.get_by_role("button", name="Open My Own Copy")).to_have_count(0)
    assert "read-only" not in copy.read_text()


def test_a_double_click_creates_at_once(portal: Instance, home: Path, page: Page) -> None:
    open_lab(page, portal, USER)
    page.locator(".jp-LauncherCard", has_text="New from Template").last.click()
    rows = page.get_by_role("dialog").locator("label")
    rows.filter(has_text="Handwritten digits with PyTorch").dblclick()
    expect(page.get_by_text("PyTorch 2.13 | Idle")).to_be_visible()
    assert (home / "pytorch-mnist.ipynb").owner() == USER


def test_a_template_becomes_a_copy_from_the_file_browser(
    portal: Instance, home: Path, page: Page
) -> None:
    open_lab(page, portal, USER)
    open_item(page, "templates")
    open_item(page, "slurm")
    item(page, "sample.job").click(button="right")
    page.get_by_role("menuitem", name="Open My Own Copy").click()
    expect(page.locator(".jp-FileEditor")).to_contain_text("#SBATCH")
    assert (home / "sample.job").owner() == USER

    # One's own files are no templates.
    page.locator(".jp-BreadCrumbs-home").click()
    expect(item(page, "isilon")).to_be_visible()
    item(page, "sample.job").click(button="right")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Open My Own Copy")).to_have_count(0)


def test_an_opened_template_offers_a_copy(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    open_lab(page, portal, USER)
    open_item(page, "templates")
    open_item(page, "pytorch")
    open_item(page, "mnist.ipynb")
    button = page.get_by_role("button", name="Open My Own Copy")
    expect(button).to_be_visible()
    colour = "element => getComputedStyle(element).backgroundColor"
    assert button.evaluate(colour) not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
    photograph(page, "template")
    button.click()
    expect(page.get_by_role("tab", name=re.compile("pytorch-mnist.ipynb"))).to_be_visible()
    assert (home / "pytorch-mnist.ipynb").owner() == USER
