"""TensorBoard for a folder of the file browser, in a real browser."""

import pwd
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dsportal.session.tensorboard import words
from tests.browser.fit import assert_has_no_faults, forms
from tests.browser.lab import item, open_item, open_lab
from tests.browser.test_journey import drawn_pixels
from tests.instance import USERS, Instance
from tests.notebooks.running import framework_python
from tests.training import curves
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.same_page]

USER = USERS[1]
FOLDER = "curves-test"
# As the template for TensorFlow writes that of its step.
GRAPH = """
import sys
import tensorflow as tf

@tf.function
def step(x):
    with tf.name_scope("dense"):
        return tf.matmul(x, tf.ones((4, 2)))

with tf.summary.create_file_writer(sys.argv[1]).as_default():
    tf.summary.graph(step.get_concrete_function(tf.TensorSpec((3, 4), tf.float32)).graph)
"""


@pytest.fixture(scope="module")
def session(portal: Instance) -> Iterator[Visitor]:
    """A user with a session, for all tests of this module."""
    visitor = Visitor(portal, USER)
    visitor.log_in().raise_for_status()
    visitor.start_and_wait(gpus=0)
    yield visitor
    visitor.leave()
    visitor.close()


@pytest.fixture
def folder(portal: Instance, session: Visitor) -> Iterator[Path]:
    """A folder with curves below two folders of it, and an empty one; no TensorBoard runs."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    folder = home / FOLDER
    portal.slurm("/bin/rm", "-rf", str(folder), user=USER)
    portal.slurm("/bin/mkdir", "-p", str(folder / "empty"), user=USER)
    for name in ("first/run 1", "second"):
        curves.write(portal, USER, folder / name)
    yield folder
    for board in boards(session):
        session.session("DELETE", f"/portal/tensorboard/{board['id']}")
    portal.slurm("/bin/rm", "-rf", str(folder), user=USER)


def boards(session: Visitor) -> list[dict[str, str]]:
    return list(session.session("GET", "/portal/tensorboard").json()["boards"])


def see_curve(board: Page) -> None:
    expect(board.locator("scalar-card").first).to_be_visible()
    until(lambda: drawn_pixels(board) > 100, seconds=30, what="a scalar chart is drawn")


def board_of_second(page: Page, portal: Instance) -> Page:
    """Open TensorBoard for the second folder with the file browser's button, and see its curve."""
    open_lab(page, portal, USER)
    open_item(page, FOLDER)
    item(page, "second").click()
    with page.expect_popup() as popup:
        page.get_by_role("button", name=re.compile("^Open TensorBoard for")).click()
    see_curve(popup.value)
    return popup.value


def test_folders_are_opened_from_the_file_browser_and_stopped_from_the_list(
    portal: Instance,
    session: Visitor,
    folder: Path,
    page: Page,
    photograph: Callable[[Page, str], None],
) -> None:
    open_lab(page, portal, USER)
    open_item(page, FOLDER)
    button = page.get_by_role("button", name=re.compile("^Open TensorBoard for"))
    item(page, "empty").click()
    expect(page.get_by_role("button", name="TensorBoard: select a folder")).to_be_disabled()
    expect(button).to_have_count(0)

    # Curves below the folder count too. By keyboard, as by mouse.
    item(page, "first").click()
    expect(button).to_be_enabled()
    expect(button).to_have_accessible_name(f"Open TensorBoard for ~/{FOLDER}/first")
    photograph(page, "tensorboard-button")
    with page.expect_popup() as popup:
        button.press("Enter")
    first = popup.value
    see_curve(first)
    assert [board["folder"] for board in boards(session)] == [f"{FOLDER}/first"]

    # Another folder has its own, and the same folder the same.
    page.bring_to_front()
    item(page, "second").click(button="right")
    with page.expect_popup() as popup:
        page.get_by_role("menuitem", name="Open in TensorBoard").click()
    second = popup.value
    see_curve(second)
    assert second.url != first.url
    page.bring_to_front()
    item(page, "first").click()
    button.click()
    expect(first.locator("scalar-card").first).to_be_visible()
    assert set(page.context.pages) == {page, first, second}
    assert len(boards(session)) == 2

    # The list of those that run.
    page.bring_to_front()
    page.get_by_role("tab", name="Running Terminals and Kernels").click()
    running = page.locator("jp-tree-item", has_text=f"~/{FOLDER}/")
    expect(running).to_have_count(2)
    photograph(page, "tensorboard-list")
    entry = running.filter(has_text="first")
    entry.hover()
    entry.get_by_title("Stop").click()
    expect(running).to_have_count(1)
    assert first.is_closed()
    assert [board["folder"] for board in boards(session)] == [f"{FOLDER}/second"]
    assert second.evaluate("() => fetch(location.href).then(answer => answer.ok)")


def test_the_launchers_card_opens_the_current_folder(
    portal: Instance, session: Visitor, folder: Path, page: Page
) -> None:
    open_lab(page, portal, USER)
    open_item(page, FOLDER)
    open_item(page, "second")
    expect(item(page, "second")).to_have_count(0)
    with page.expect_popup() as popup:
        page.locator(".jp-LauncherCard", has_text="TensorBoard").click()
    see_curve(popup.value)
    assert [board["folder"] for board in boards(session)] == [f"{FOLDER}/second"]


def test_an_empty_folder_shows_its_curves_as_soon_as_there_are(
    portal: Instance, session: Visitor, folder: Path, page: Page
) -> None:
    open_lab(page, portal, USER)
    open_item(page, FOLDER)
    item(page, "empty").click(button="right")
    with page.expect_popup() as popup:
        page.get_by_role("menuitem", name="Open in TensorBoard").click()
    board = popup.value
    expect(board.get_by_role("heading")).to_have_text(words.no_curves(f"~/{FOLDER}/empty"))
    assert boards(session) == []
    curves.write(portal, USER, folder / "empty")
    see_curve(board)


def test_the_graph_that_a_training_has_written_is_drawn(
    portal: Instance,
    session: Visitor,
    folder: Path,
    page: Page,
    photograph: Callable[[Page, str], None],
) -> None:
    python = str(framework_python("tensorflow"))
    portal.slurm(python, "-I", "-c", GRAPH, str(folder / "second"), user=USER)
    board = board_of_second(page, portal)
    board.get_by_role("tab", name="Graphs").click()
    expect(board.locator("g.node", has_text="dense").first).to_be_visible(timeout=60_000)
    photograph(board, "tensorboard-graph")


def test_a_folder_that_has_gone_and_a_stopped_tensorboard_are_said_in_words(
    portal: Instance, session: Visitor, folder: Path, page: Page
) -> None:
    board = board_of_second(page, portal)
    portal.slurm("/bin/rm", "-r", str(folder / "second"), user=USER)
    board.reload()
    expect(board.get_by_role("status")).to_have_text(words.no_folder(f"~/{FOLDER}/second"))
    assert boards(session) == []
    for _, seen in forms(board, "a folder that has gone"):
        assert_has_no_faults(board, seen)
    board.reload()
    expect(board.get_by_role("heading")).to_have_text(words.STOPPED)
    for _, seen in forms(board, "a stopped TensorBoard"):
        assert_has_no_faults(board, seen)
