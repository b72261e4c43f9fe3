"""The model server's page: a model is chosen, loaded and tried."""

import os
import pwd
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import tiny_models
from tests.browser.axe import faults
from tests.browser.lab import open_lab
from tests.browser.test_launcher import card
from tests.instance import USERS, Instance
from tests.notebooks.running import framework_python
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[4]


@pytest.fixture
def runs(portal: Instance, visit: Callable[[str], Visitor]) -> Iterator[Path]:
    """Two runs of a user with a session: a language model, and a later network for images."""
    account = pwd.getpwnam(USER)
    runs = Path(account.pw_dir) / "logs"
    shutil.rmtree(runs, ignore_errors=True)
    python = framework_python("pytorch")
    tiny_models.text(python, runs / "language/letters/model")
    tiny_models.image(python, runs / "vision/animals/best")
    for path in (runs, *runs.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    visit(USER).start_and_wait(gpus=0)
    yield runs
    shutil.rmtree(runs)


def choose(page: Page, name: str) -> None:
    page.get_by_role("radio", name=name).check()
    page.get_by_role("button", name="Load").click()
    expect(page.locator("#status")).to_have_text(re.compile(f"{name} is loaded"))


def test_a_model_is_chosen_loaded_and_tried(
    portal: Instance,
    runs: Path,
    page: Page,
    tmp_path: Path,
    photograph: Callable[[Page, str], None],
) -> None:
    open_lab(page, portal, USER)
    with page.expect_popup() as popup:
        card(page, "Tools", "Model server").click()
    server = popup.value
    expect(server.get_by_role("heading", name="Model server")).to_be_visible()
    expect(server.get_by_role("heading", name="Choose a model")).to_be_visible()
    # Newest first.
    expect(server.get_by_role("radio")).to_have_count(2)
    expect(server.locator("label.model strong")).to_have_text(["animals/best", "letters/model"])
    server.get_by_role("button", name="Load").click()
    expect(server.get_by_role("alert")).to_have_text("Choose a model, or enter a folder.")

    choose(server, "letters/model")
    prompt = server.get_by_label("Prompt")
    prompt.fill("This <b>License</b>")
    server.get_by_label("Tokens at most").fill("12")
    server.get_by_role("button", name="Complete").click()
    written = server.get_by_label("Answer")
    expect(written).to_have_text(re.compile("^This <b>License</b>."))
    expect(written.locator("b")).to_have_count(0)
    address = f"/user/{USER}/tools/model-server"
    expect(server.locator("#address")).to_have_text(re.compile(f"{address}$"))
    expect(server.locator("#curl")).to_contain_text(f"{address}/v1/completions")
    server.get_by_label("Tokens at most").fill("200")
    server.get_by_role("button", name="Complete").click()
    expect(server.get_by_role("alert")).to_contain_text("this model can take 64 together")

    choose(server, "animals/best")
    expect(server.get_by_label("Prompt")).to_be_hidden()
    server.get_by_label("Drop an image here").set_input_files(
        {"name": "x.png", "mimeType": "image/png", "buffer": page.screenshot()}
    )
    rows = server.get_by_role("table", name="Likeliest classes").get_by_role("row")
    expect(rows).to_have_count(1 + len(tiny_models.CLASSES))
    expect(rows.get_by_text("<b>cat</b>")).to_be_visible()
    expect(server.get_by_role("alert")).to_be_hidden()
    expect(server.locator("#python")).to_contain_text(f"{address}/v1/classify")
    assert faults(server) == []
    photograph(server, "model-server")
    server.emulate_media(color_scheme="dark")
    assert faults(server) == []
    server.screenshot(path=tmp_path / "model-server-dark.png")

    server.get_by_label("Drop an image here").set_input_files(
        {"name": "large.png", "mimeType": "image/png", "buffer": bytes(20 * 2**20 + 1)}
    )
    expect(server.get_by_role("alert")).to_have_text("large.png is larger than 20 MiB.")

    # A page that is opened again shows what is loaded; a folder may be entered.
    server.reload()
    expect(server.locator("#status")).to_have_text(re.compile("animals/best is loaded"))
    server.get_by_label("Another folder").fill(str(runs / "language"))
    server.get_by_role("button", name="Load").click()
    expect(server.get_by_role("alert")).to_contain_text("config.json cannot be read")
