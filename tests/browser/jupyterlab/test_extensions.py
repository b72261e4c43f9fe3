"""What JupyterLab has besides: Git's panel, completion, downloads, and word of long work's end."""

import json
import pwd
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.keyboard import arrow_to, tab_to
from tests.browser.lab import item, open_item, open_lab, wait_for_notebook
from tests.instance import USERS, Instance
from tests.processes import running
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser

USER = USERS[4]
# A browser that asks for its permission, and remembers what was shown.
NOTIFICATIONS = """
document.hasFocus = () => false;
window.told = [];
window.Notification = class {
  static permission = "default";
  static requestPermission = async () => (Notification.permission = "granted");
  constructor(title, options) { window.told.push([title, options.body]); }
};
"""
SETTINGS = ".jupyter/lab/user-settings/data-scientist-portal"


@pytest.fixture
def home(portal: Instance, visit: Callable[[str], Visitor]) -> Iterator[Path]:
    """The home of somebody with a session, a repository and a program."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    made = [SETTINGS, "work", "long.ipynb", "Untitled.ipynb"]

    def as_user(*argv: str) -> None:
        portal.slurm(*argv, user=USER, home=str(home))

    as_user("/bin/rm", "-rf", *[str(home / name) for name in made])
    as_user("/usr/bin/git", "init", "--quiet", "--initial-branch=trunk", str(home / "work"))
    for name in ("model.py", "notes.txt"):
        as_user("/usr/bin/touch", str(home / "work" / name))
    as_user("/bin/mkdir", "-p", str(home / SETTINGS))
    as_user(
        "/usr/bin/python3",
        "-c",
        "import sys; open(sys.argv[1], 'w').write(sys.argv[2])",
        str(home / SETTINGS / "notify.jupyterlab-settings"),
        '{"seconds": 2}',
    )
    visit(USER).start_and_wait(gpus=0)
    yield home
    as_user("/bin/rm", "-rf", *[str(home / name) for name in made])


def test_git_and_completion_know_a_repository(
    portal: Instance,
    home: Path,
    page: Page,
    visit: Callable[[str], Visitor],
    photograph: Callable[[Page, str], None],
) -> None:
    open_lab(page, portal, USER)
    open_item(page, "work")
    page.get_by_role("tab", name="Git", exact=True).click()
    panel = page.locator("#jp-git-sessions")
    expect(panel).to_contain_text("trunk")
    expect(panel).to_contain_text("model.py")

    # The file has no kernel: it is the language server that knows.
    page.get_by_role("tab", name=re.compile("^File Browser")).click()
    open_item(page, "model.py")
    page.locator(".jp-FileEditor .cm-content").click()
    page.keyboard.type("import json\njson.du")
    proposed = page.locator(".jp-Completer-item").filter(has_text="dumps")

    def propose() -> None:
        page.keyboard.press("Tab")
        expect(proposed.first).to_be_visible(timeout=5_000)

    patiently(propose)
    photograph(page, "completion")
    page.keyboard.press("Escape")
    page.keyboard.type("mps(loss)\n")
    wrong = page.locator(".jp-FileEditor .cm-lintRange", has_text="loss")
    expect(wrong).to_be_visible()
    wrong.hover()
    expect(page.locator(".cm-tooltip-lint")).to_contain_text("undefined name 'loss'")
    photograph(page, "diagnostics")

    # It speaks over a pipe: the session's port is the only one.
    listening = visit(USER).run(
        "import subprocess; print(subprocess.run(['ss', '-tlnpH'], capture_output=True, "
        "text=True).stdout)"
    )
    owned = [line for line in listening.splitlines() if "users:" in line]
    assert len(owned) == 1, listening
    assert running("pylsp", user=USER)
    visit(USER).stop()
    until(
        lambda: not running("pylsp", user=USER),
        seconds=30,
        what="the language server has ended with the session",
    )


def patiently(attempt: Callable[[], None]) -> None:
    """Try until the language server, which starts with the first file, has answered."""
    for _ in range(6):
        try:
            attempt()
            return
        except AssertionError:
            continue
    attempt()


def run_cell(page: Page, code: str) -> None:
    page.locator(".jp-Notebook-cell .cm-content").last.click()
    page.keyboard.type(code)
    page.keyboard.press("Shift+Enter")


def test_a_long_cell_notifies_a_user_who_allowed_it(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    page.add_init_script(NOTIFICATIONS)
    open_lab(page, portal, USER)
    page.get_by_role("button", name=re.compile("^Python 3")).first.click()
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible()

    run_cell(page, "import time; time.sleep(3)")
    offer = page.get_by_role("alert").filter(has_text="notified when long-running work ends")
    expect(offer).to_be_visible()
    photograph(page, "notify-offer")
    assert page.evaluate("told") == []
    offer.get_by_role("button", name="Notify Me").click()
    expect(offer).to_have_count(0)

    run_cell(page, "1 + 1")
    run_cell(page, "time.sleep(3); 1 / 0")
    page.wait_for_function("told.length > 0")
    assert page.evaluate("told") == [
        ["Cell failed in Untitled.ipynb", "It ran for under a minute."]
    ]
    # Who looks at it needs no notification.
    page.evaluate("document.hasFocus = () => true")
    run_cell(page, "time.sleep(3); print('seen')")
    expect(page.get_by_text("seen", exact=True)).to_be_visible()
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible()
    assert page.evaluate("told.length") == 1
    # How long it took is at the cell.
    expect(page.locator(".execute-time").first).to_contain_text("Last executed")


def test_a_long_job_notifies_a_user_who_allowed_it(
    portal: Instance, home: Path, page: Page
) -> None:
    # Who was asked in an earlier visit.
    page.add_init_script(f"{NOTIFICATIONS}; Notification.permission = 'granted'")
    argv = ["sbatch", "--parsable", "--mem=50M", "--job-name=training", "--wrap=sleep 15"]
    open_lab(page, portal, USER)
    # The panel that is open looks every few seconds.
    page.get_by_role("tab", name="Slurm: my jobs").click()
    panel = page.get_by_role("region", name="Slurm: my jobs")
    expect(panel).to_contain_text("This session")
    portal.slurm(*argv, user=USER, home=str(home))
    page.wait_for_function("told.length > 0")
    ((title, body),) = page.evaluate("told")
    assert "training" in title
    assert body == "It ran for under a minute."
    # One that its user cancels is no news.
    other = portal.slurm(*argv[:-1], "--wrap=sleep 600", user=USER, home=str(home)).strip()
    shown = panel.get_by_role("listitem").filter(has_text=f"Job {other} ·")
    try:
        expect(shown).to_contain_text("running")
        until(lambda: portal.job(other)["RunTime"] > "00:00:02", seconds=30, what="it ran long")
    finally:
        portal.cancel(other)
    expect(shown).to_contain_text(re.compile("^trainingcancelled"), timeout=60_000)
    assert page.evaluate("told.length") == 1


NOTEBOOK = {
    "cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Aims\n## Data"}],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_tables_headings_and_prints_need_no_extension(
    portal: Instance, home: Path, page: Page
) -> None:
    for name, text in (("losses.csv", "step,loss\n1,0.5\n"), ("plan.ipynb", json.dumps(NOTEBOOK))):
        portal.slurm("/usr/bin/tee", str(home / "work" / name), user=USER, stdin=text)
    open_lab(page, portal, USER)
    open_item(page, "work")
    open_item(page, "losses.csv")
    expect(page.locator(".jp-CSVViewer .lm-DataGrid")).to_be_visible()
    open_item(page, "plan.ipynb")
    page.get_by_role("menuitem", name="View", exact=True).click()
    page.get_by_role("menuitem", name="Table of Contents").click()
    expect(page.get_by_role("tab", name=re.compile("^Table of Contents"))).to_be_visible()
    headings = page.locator("#table-of-contents").get_by_role("treeitem")
    expect(headings).to_contain_text(["Aims", "Data"])
    page.get_by_role("menuitem", name="File", exact=True).click()
    expect(page.get_by_role("menuitem", name=re.compile("^Print"))).to_be_enabled()


def test_code_is_formatted_from_the_menu(portal: Instance, home: Path, page: Page) -> None:
    open_lab(page, portal, USER)
    page.get_by_role("button", name=re.compile("^Python 3")).first.click()
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible()
    cell = page.locator(".jp-Notebook-cell .cm-content").last
    cell.click()
    page.keyboard.type("x=1")
    page.get_by_role("menuitem", name="Edit", exact=True).click()
    page.get_by_role("menuitem", name="Apply ruff formatter").click()
    expect(cell).to_have_text("x = 1")

    open_item(page, "work")
    open_item(page, "model.py")
    file = page.locator(".jp-FileEditor .cm-content")
    file.click()
    page.keyboard.type("y=2")
    page.get_by_role("menuitem", name="Edit", exact=True).click()
    page.get_by_role("menuitem", name="Apply ruff formatter").click()
    expect(file).to_have_text("y = 2")


def test_a_notebook_is_exported_only_as_what_the_node_can_make(
    portal: Instance, home: Path, page: Page
) -> None:
    plan = str(home / "work/plan.ipynb")
    portal.slurm("/usr/bin/tee", plan, user=USER, stdin=json.dumps(NOTEBOOK))
    open_lab(page, portal, USER)
    open_item(page, "work")
    # JupyterLab fills the menu then; one that is opened before stays empty.
    with page.expect_response(re.compile("/api/nbconvert")):
        open_item(page, "plan.ipynb")
    wait_for_notebook(page)
    page.get_by_role("menuitem", name="File", exact=True).click()
    page.locator(".lm-Menu-itemLabel").get_by_text("Save and Export Notebook As").click()
    formats = page.locator("#jp-mainmenu-file-notebookexport").get_by_role("menuitem")
    expect(formats.filter(has_text="HTML")).to_be_visible()
    # The test cluster's nodes are this machine.
    assert shutil.which("xelatex") or formats.filter(has_text="PDF").count() == 0


def test_a_word_is_searched_in_all_files_of_a_folder(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    found = {"notes.txt": "a learning rate\n", "plan.ipynb": json.dumps(NOTEBOOK), "b.md": "rate"}
    for name, text in found.items():
        portal.slurm("/usr/bin/tee", str(home / "work" / name), user=USER, stdin=text)
    # What links lead to may be the whole NAS.
    portal.slurm("/bin/ln", "-s", "/etc", str(home / "work/elsewhere"), user=USER)
    open_lab(page, portal, USER)
    open_item(page, "work")
    # By keyboard alone: the arrows lead from one tab at the side to the next.
    tab_to(page, page.get_by_role("tab", name=re.compile("^File Browser")))
    search = page.get_by_role("tab", name="Search and Replace")
    arrow_to(page, "ArrowDown", search)
    page.keyboard.press("Enter")
    panel = page.locator("#jp-search-replace")
    expect(panel.get_by_role("textbox", name="Search Files for Text")).to_be_focused()
    page.keyboard.type("rate")
    expect(panel.locator(".jp-search-replace-statistics")).to_have_text("2 results in 2 files")
    for name in ("b.md", "notes.txt"):
        expect(panel.locator(".search-tree-files > span", has_text=name)).to_be_visible()
    photograph(page, "search")
    tab_to(page, panel.get_by_role("treeitem").first)
    arrow_to(page, "ArrowDown", panel.locator(".search-tree-matches", has_text="a learning"))
    page.keyboard.press("Enter")
    expect(page.locator(".jp-FileEditor .cm-content")).to_contain_text("a learning rate")


def test_a_folder_is_downloaded_as_a_zip_file(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    portal.slurm("/usr/bin/tee", str(home / "work/losses.csv"), user=USER, stdin="step\n")
    portal.slurm("/bin/ln", "-s", "/etc/hosts", str(home / "work/hosts"), user=USER)
    open_lab(page, portal, USER)
    item(page, "work").click(button="right")
    entry = page.get_by_role("menuitem", name="Download as ZIP")
    expect(entry).to_be_visible()
    photograph(page, "download")
    with page.expect_download() as download:
        entry.click()
    assert download.value.suggested_filename == "work.zip"
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.testzip() is None
        # Neither the repository, which is hidden, nor what the link leads to.
        names = ["LEFT-OUT.txt", "losses.csv", "model.py", "notes.txt"]
        assert sorted(archive.namelist()) == [f"work/{name}" for name in names]
        assert archive.read("work/losses.csv") == b"step\n"
        assert archive.read("work/LEFT-OUT.txt") == b"work/hosts: a link\n"
