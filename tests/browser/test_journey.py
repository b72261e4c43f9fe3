"""What a data scientist does on the first day, in a real browser."""

import base64
import pwd
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from jupyterhub_gpu_slurm.session.reasons import REASONS
from tests import faults
from tests.browser.lab import forget_screen, log_in, open_item, wait_for_launcher
from tests.instance import ADMIN, USERS, Instance
from tests.training import few_digits
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser

USER = USERS[0]
ACCURACY = re.compile(
    r"epoch +(\d+).*?step +([\d,]+).*?training accuracy +([\d.]+).*?test accuracy +([\d.]+)"
)


@pytest.fixture
def clean_user(portal: Instance) -> Iterator[str]:
    """A user without a session or anything of an earlier one on the screen, who is welcomed."""
    forget_screen(portal, USER)
    own = ".jupyter/lab/user-settings/data-scientist-portal"
    portal.slurm("/bin/rm", "-rf", f"{pwd.getpwnam(USER).pw_dir}/{own}", user=USER)
    yield USER
    visitor = Visitor(portal, USER)
    visitor.log_in()
    visitor.leave()
    visitor.close()


@pytest.fixture
def digits(portal: Instance) -> Iterator[Path]:
    """So few that three epochs take seconds."""
    # The user's home has a link to the NAS once there was a session.
    nas = Path(portal.settings["session"]["folders"]["isilon"])
    folder = few_digits.write(nas, USER, "few-digits")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.usefixtures("clean_user")
def test_log_in_choose_gpus_train_look_and_stop(
    portal: Instance, page: Page, digits: Path, photograph: Callable[[Page, str], None]
) -> None:
    page.goto(portal.url)
    photograph(page, "login")
    log_in(page, portal, USER)

    # My Server leads to the options.
    page.get_by_role("radio", name=re.compile("^2 GPUs")).check(force=True)
    photograph(page, "options")
    page.get_by_role("button", name="Start").click()

    # JupyterLab, with the two folders.
    listing = page.locator(".jp-DirListing-content")
    wait_for_launcher(page)
    expect(listing.get_by_text("templates", exact=True)).to_be_visible()
    expect(listing.get_by_text("isilon", exact=True)).to_be_visible()
    expect(page.locator(".jp-LauncherCard", has_text="TensorFlow").first).to_be_visible()
    expect(page.get_by_role("region", name="Welcome")).to_be_visible()
    photograph(page, "landing")
    (job_id,) = portal.jobs(user=USER)
    assert portal.job(job_id)["TresPerNode"] == "gres:gpu:2"

    # The TensorFlow template, with the user's own data, Restart & Run All.
    open_item(page, "templates")
    open_item(page, "tensorflow")
    open_item(page, "mnist.ipynb")
    expect(page.locator(".jp-Notebook")).to_be_visible()
    expect(page.get_by_text("TensorFlow 2.21 | Idle")).to_be_visible()
    page.locator(".jp-Notebook .cm-line").filter(has_text="data_dir =").first.click()
    page.keyboard.press("End")
    page.keyboard.insert_text(f'\ndata_dir = "~/{digits.name}"')
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("Restart Kernel and Run All")).click()
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    lines = until(
        lambda: finished_lines(page), seconds=180, every=2, what="three epochs of training"
    )
    steps = [int(step.replace(",", "")) for _, step, _, _ in lines]
    assert steps[:3] == [100, 200, 300]
    assert float(lines[-1][3].rstrip(".")) > 0.9
    page.locator(".jp-OutputArea-output", has_text="epoch 3").last.scroll_into_view_if_needed()
    photograph(page, "notebook")

    # TensorBoard, in a tab of its own, with a scalar chart drawn.
    toolbar = page.get_by_role("toolbar").filter(has=page.get_by_text("TensorFlow 2.21"))
    with page.expect_popup() as popup:
        toolbar.get_by_role("button", name=re.compile("^TensorBoard")).click()
    board = popup.value
    expect(board.locator("scalar-card").first).to_be_visible(timeout=60_000)
    until(lambda: drawn_pixels(board) > 100, seconds=30, what="a scalar chart is drawn")
    photograph(board, "tensorboard")
    board.close()

    # Control Panel, Stop.
    with page.context.expect_page() as panel:
        page.get_by_role("menuitem", name="File", exact=True).click()
        page.get_by_role("menuitem", name="Hub Control Panel").click()
    home = panel.value
    # The page's buttons are there before the script that makes them do something.
    home.wait_for_function("window._jupyterhub_page_loaded")
    home.get_by_role("button", name="Stop", exact=True).click()
    expect(home.get_by_role("button", name="Start a session")).to_be_visible()
    until(lambda: not portal.jobs(user=USER), seconds=15, what="the job is gone")


def finished_lines(page: Page) -> list[tuple[str, str, str, str]]:
    """Return the accuracy lines once three epochs are done, before that nothing."""
    # Also of cells that are scrolled away, which have no inner text.
    text = page.locator(".jp-Notebook").text_content() or ""
    lines = ACCURACY.findall(text)
    is_done = page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").count() > 0
    return lines if is_done and lines and lines[-1][0] == "3" else []


RUN_COLOUR = [66, 80, 102]
"""TensorBoard's first colour for a run."""

COUNT_PIXELS = """
async ([picture, colour]) => {
  const image = await createImageBitmap(await (await fetch(picture)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    count += colour.every((part, index) => Math.abs(data[at + index] - part) < 12) ? 1 : 0;
  }
  return count;
}
"""


def drawn_pixels(board: Page) -> int:
    """Count the pixels of the first chart that have the run's colour: its line."""
    # Chromium draws nothing on a page behind another, such as the last look's.
    board.bring_to_front()
    chart = board.locator("scalar-card line-chart canvas").first.screenshot()
    picture = f"data:image/png;base64,{base64.b64encode(chart).decode()}"
    # On an empty page: TensorBoard's own forbids to fetch.
    counter = board.context.new_page()
    count = counter.evaluate(COUNT_PIXELS, [picture, RUN_COLOUR])
    counter.close()
    return int(count)


@pytest.mark.usefixtures("clean_user")
def test_the_page_says_why_a_session_waits(
    portal: Instance, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    with portal.gpus_taken():
        log_in(page, portal, USER)
        page.get_by_role("radio", name=re.compile("^4 GPUs")).check(force=True)
        page.get_by_role("button", name="Start").click()
        status = page.get_by_role("status").first
        expect(status).to_contain_text("PENDING, Resources")
        expect(page.get_by_role("heading", level=1)).to_have_text("Waiting for 4 GPUs")
        expect(status).to_contain_text(REASONS["Resources"].why)
        expected = page.locator("#progress-expected")
        expect(expected).to_have_text(re.compile(r"^by .+ \(within .+\)$"), timeout=60_000)
        expect(page.get_by_role("timer")).to_have_text(re.compile(r"^\d+ (s|min)$"))
        bar = page.get_by_role("progressbar")
        assert 0 < int(bar.get_attribute("aria-valuenow") or 0) < 100
        photograph(page, "waiting")
        page.get_by_role("button", name="Cancel").click()
        until(lambda: not portal.jobs(user=USER), seconds=15, what="the job is gone")
        expect(page.get_by_role("heading", level=1)).to_have_text("The start was cancelled")
        expect(status).to_contain_text(re.compile(r"Job \d+ was cancelled"))
        expect(page.get_by_role("button", name="Choose again")).to_be_visible()


@pytest.mark.usefixtures("clean_user")
def test_the_page_of_a_failed_start_shows_slurms_state_and_the_log(
    portal: Instance, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    # It goes on once the page has said what it is doing.
    program = "until [ -e go ]; do sleep 0.1; done; echo the disk is full >&2; exit 3"
    home = Path(pwd.getpwnam(USER).pw_dir)
    portal.slurm("/bin/rm", "-f", str(home / "go"), user=USER)
    with faults.session_program(portal, f"#!/bin/bash\ncd\n{program}\n"):
        log_in(page, portal, USER)
        page.get_by_role("radio", name=re.compile("^No GPU")).check(force=True)
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Starting JupyterLab")
        portal.slurm("/usr/bin/touch", str(home / "go"), user=USER)
        expect(page.get_by_text("FAILED").first).to_be_visible()
        expect(page.get_by_text("the disk is full")).to_be_visible()
        photograph(page, "failed")


@pytest.mark.usefixtures("clean_user")
def test_an_admin_sees_and_stops_a_users_session(portal: Instance, page: Page) -> None:
    visitor = Visitor(portal, USER)
    visitor.log_in()
    visitor.start_and_wait(gpus=1)
    visitor.close()
    log_in(page, portal, ADMIN)
    page.goto(f"{portal.url}/hub/admin")
    row = page.get_by_role("row", name=re.compile(USER)).first
    row.get_by_role("button", name="Stop Session").click()
    until(lambda: not portal.jobs(user=USER), seconds=30, what="the user's job is gone")
    expect(row.get_by_role("button", name="Start Session")).to_be_visible()
