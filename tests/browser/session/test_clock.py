"""The end of a session's time, as its user sees it."""

import json
import pwd
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import forget_screen, log_in, wait_for_notebook
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.waits]

USER = USERS[1]
NOTEBOOK = "clock-test.ipynb"
CELL = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "source": ""}
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
EMPTY = {
    "cells": [{**CELL, "execution_count": None}],
    "metadata": {"kernelspec": KERNEL},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def home(portal: Instance) -> Iterator[Path]:
    """The user's home, where JupyterLab saves nothing by itself, with an empty notebook."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    folder = home / ".jupyter/lab/user-settings/@jupyterlab/docmanager-extension"
    settings = {"autosave": False}
    files = {
        folder / "plugin.jupyterlab-settings": settings,
        home / NOTEBOOK: EMPTY,
    }
    forget_screen(portal, USER)
    for file, content in files.items():
        portal.slurm("/bin/mkdir", "-p", str(file.parent), user=USER)
        portal.slurm("/usr/bin/tee", str(file), user=USER, stdin=json.dumps(content))
    yield home
    portal.slurm("/bin/rm", "-f", *map(str, files), user=USER)


@pytest.fixture
def user(portal: Instance, visit: Callable[[str], Visitor], home: Path) -> Visitor:
    user = visit(USER)
    user.leave()
    return user


def open_notebook(page: Page, portal: Instance) -> None:
    log_in(page, portal, USER, to=f"/user/{USER}/lab/tree/{NOTEBOOK}")
    wait_for_notebook(page)
    expect(time_left(page)).to_be_visible()


def type_into_notebook(page: Page, text: str) -> None:
    page.locator(".jp-Notebook .cm-content").first.click()
    page.keyboard.type(text)


def time_left(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("left$"))


def warning(page: Page) -> Locator:
    return page.locator(".Toastify__toast", has_text="session ends in")


def test_a_session_warns_saves_and_is_extended(
    portal: Instance, page: Page, user: Visitor, home: Path, photograph: Callable[[Page, str], None]
) -> None:
    job_id = user.start_and_wait(gpus=1, hours=4 / 60)
    open_notebook(page, portal)
    type_into_notebook(page, "an_unsaved_line")

    # What is past of the warnings is said at once; the next one comes in its time.
    expect(time_left(page)).to_have_text(re.compile(r"^1 GPU · \S+ · [1-3] min left$"))
    expect(warning(page)).to_contain_text(re.compile(r"ends in [2-4] min, at \d"))
    photograph(page, "time-left")
    assert "an_unsaved_line" not in (home / NOTEBOOK).read_text()
    until(
        lambda: "an_unsaved_line" in (home / NOTEBOOK).read_text(),
        seconds=150,
        what="the notebook is saved two minutes before the end",
    )
    # The new warning takes the old one's place, once that has slid away.
    expect(page.locator(".Toastify__toast", has_text="ends in 2 min, at")).to_be_visible()
    expect(warning(page)).to_have_count(1)

    # One click gives an hour more, and the warning is gone.
    warning(page).get_by_role("button", name="Extend by 1 h").click()
    expect(page.get_by_text(re.compile(r"now ends at \d"))).to_be_visible()
    expect(warning(page)).to_have_count(0)
    expect(time_left(page)).to_have_text(re.compile("· 1 h 0[0-3] min left$"))
    photograph(page, "extended")
    assert portal.job(job_id)["TimeLimit"] == "01:04:00"

    # The item of the status bar asks for how long.
    time_left(page).click()
    dialog = page.get_by_role("dialog").filter(has_text="Extend Session")
    expect(dialog).to_be_visible()
    dialog.get_by_role("combobox").select_option("2 h")
    photograph(page, "extend")
    dialog.get_by_role("button", name="Extend").click()
    expect(time_left(page)).to_have_text(re.compile("· 3 h 0[0-3] min left$"))
    assert portal.job(job_id)["TimeLimit"] == "03:04:00"


def test_a_session_that_is_told_to_stop_saves_first(
    portal: Instance, page: Page, user: Visitor, home: Path
) -> None:
    job_id = user.start_and_wait(gpus=0, hours=1)
    open_notebook(page, portal)
    type_into_notebook(page, "another_unsaved_line")
    expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(1)
    portal.slurm("scancel", job_id)
    until(lambda: not portal.jobs(user=USER), seconds=30, what="the job is gone")
    assert "another_unsaved_line" in (home / NOTEBOOK).read_text()


def test_a_warning_says_why_there_is_no_more_time(
    portal: Instance, page: Page, user: Visitor
) -> None:
    user.start_and_wait(gpus=0, hours=0.05)
    for _ in range(3):
        user.session("POST", "/portal/clock/extend", json={"minutes": 1}).raise_for_status()
    open_notebook(page, portal)
    expect(warning(page)).to_contain_text("extended 3 times")
    expect(warning(page).get_by_role("button", name=re.compile("Extend"))).to_have_count(0)
