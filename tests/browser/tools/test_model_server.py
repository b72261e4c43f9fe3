"""The model server's page: a model is chosen, loaded and tried."""

import json
import os
import pwd
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import faults
from tests.browser.jupyterlab.test_launcher import card
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.notebooks.running import framework_python
from tests.training import tiny_models
from tests.visitor import Visitor, session_of
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.same_page]

USER = USERS[4]
CHAT = "{% for one in messages %}{{ one.role }}: {{ one.content }}<end>{% endfor %}assistant:"


@pytest.fixture(scope="module")
def runs(portal: Instance) -> Iterator[Path]:
    """Runs of a user: language models, one of them taught, and one for images."""
    account = pwd.getpwnam(USER)
    runs = Path(account.pw_dir) / "logs"
    shutil.rmtree(runs, ignore_errors=True)
    python = framework_python("pytorch")
    taught = runs / "language/taught/model"
    tiny_models.make(
        python,
        tiny_models.text(runs / "language/letters/model"),
        tiny_models.text(taught, 4096, is_endless=True),
        tiny_models.image(runs / "vision/animals/best"),
    )
    (taught / "chat_template.jinja").write_text(CHAT)
    for path in (runs, *runs.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    yield runs
    shutil.rmtree(runs)


@pytest.fixture(scope="module")
def user(portal: Instance, runs: Path) -> Iterator[Visitor]:
    """That user, with a session for all tests of this module."""
    with session_of(portal, USER) as user:
        yield user


@pytest.fixture(autouse=True)
def stopped(user: Visitor) -> Iterator[None]:
    """Leave no model server to the next test."""
    yield
    user.session("DELETE", "/portal/tools/model-server").raise_for_status()


def choose(page: Page, name: str) -> None:
    page.get_by_role("radio", name=name).check()
    page.get_by_role("button", name="Load").click()
    expect(page.locator("#status")).to_have_text(re.compile(f"{name} is loaded"))


def opened(page: Page, portal: Instance) -> Page:
    """Open the server's page from the launcher."""
    open_lab(page, portal, USER)
    with page.expect_popup() as popup:
        card(page, "Tools", "Model server").click()
    server = popup.value
    expect(server.get_by_role("heading", name="Model server")).to_be_visible()
    expect(server.get_by_role("heading", name="Choose a model")).to_be_visible()
    # Its script has run, without which a click does nothing.
    server.wait_for_load_state()
    return server


def test_a_conversation_shows_the_answer_as_it_comes(
    portal: Instance, runs: Path, page: Page, tmp_path: Path
) -> None:
    server = opened(page, portal)
    choose(server, "taught/model")
    expect(server.get_by_label("Prompt")).to_be_hidden()
    message, turns = server.get_by_label("Message"), server.get_by_label("Conversation")
    expect(turns).to_be_hidden()
    expect(server.get_by_label("Tokens at most")).to_have_value("")

    def served() -> int:
        state = server.evaluate("fetch('state').then(answer => answer.json())")
        return int(state["requests"])

    before = served()
    message.fill("Is this <b>free</b>?")
    server.get_by_role("button", name="Send").click()
    # A part of the answer is there while it is written.
    answer = turns.get_by_role("listitem").nth(1)
    expect(answer).to_have_text(re.compile("^Model.{3}", re.DOTALL))
    server.get_by_role("button", name="Stop").click()
    expect(server.get_by_role("button", name="Send")).to_be_enabled()
    expect(server.get_by_role("alert")).to_be_hidden()
    stopped = answer.inner_text()
    until(lambda: served() > before, seconds=120, what="the server is free")
    assert answer.inner_text() == stopped
    expect(message).to_have_value("")

    # The answer is a part of what is asked next; Enter sends.
    server.get_by_label("Tokens at most").fill("12")
    with server.expect_request("**/v1/chat/completions") as sent:
        message.fill("And now?")
        message.press("Enter")
    said = json.loads(sent.value.post_data or "")["messages"]
    assert [one["role"] for one in said] == ["user", "assistant", "user"]
    assert said[0]["content"] == "Is this <b>free</b>?"
    assert said[1]["content"] == stopped.removeprefix("Model").removeprefix("\n")
    expect(turns.get_by_role("listitem")).to_have_count(4)
    expect(turns.locator("b")).to_have_count(0)
    expect(server.get_by_role("button", name="Send")).to_be_enabled()
    expect(server.locator("#python")).to_contain_text("/v1/chat/completions")
    for scheme in ("light", "dark"):
        server.emulate_media(color_scheme=scheme)
        assert faults(server) == []
        server.screenshot(path=tmp_path / f"conversation-{scheme}.png", full_page=True)

    # What cannot be answered leaves the message where it was.
    server.get_by_label("Tokens at most").fill("4096")
    message.fill("Too long?")
    server.get_by_role("button", name="Send").click()
    expect(server.get_by_role("alert")).to_contain_text("this model can take 4096 together")
    expect(message).to_have_value("Too long?")
    expect(turns.get_by_role("listitem")).to_have_count(4)
    server.get_by_role("button", name="New conversation").click()
    expect(turns).to_be_hidden()


def test_a_model_is_chosen_loaded_and_tried(
    portal: Instance,
    runs: Path,
    page: Page,
    tmp_path: Path,
    photograph: Callable[[Page, str], None],
) -> None:
    server = opened(page, portal)
    # Newest first.
    expect(server.locator("label.model strong")).to_have_text(
        ["animals/best", "taught/model", "letters/model"]
    )
    server.get_by_role("button", name="Load").click()
    expect(server.get_by_role("alert")).to_contain_text("Choose a model")

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

    large = tmp_path / "large.png"
    large.touch()
    os.truncate(large, 20 * 2**20 + 1)
    server.get_by_label("Drop an image here").set_input_files(large)
    expect(server.get_by_role("alert")).to_have_text("large.png is larger than 20 MiB.")

    # A page that is opened again shows what is loaded; a folder may be entered.
    server.reload()
    expect(server.locator("#status")).to_have_text(re.compile("animals/best is loaded"))
    server.get_by_label("Another folder").fill(str(runs / "language"))
    server.get_by_role("button", name="Load").click()
    expect(server.get_by_role("alert")).to_contain_text("config.json cannot be read")
