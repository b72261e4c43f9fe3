"""VS Code in the browser: a card of the launcher, in the user's own session."""

import pwd
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.jupyterlab.test_launcher import card
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser

USER = USERS[2]
OURS = (".local/share/code-server", ".config/code-server", "hello.py", "seen.txt")


@pytest.fixture
def home(visit: Callable[[str], Visitor]) -> Iterator[Path]:
    """The home of a user with a session, with a program in it."""
    account = pwd.getpwnam(USER)
    home = Path(account.pw_dir)
    visitor = visit(USER)
    visitor.start_and_wait(gpus=1)
    visitor.run("open('hello.py', 'w').write('print(1)')")
    yield home
    # It writes into its folder as long as it runs.
    visitor.stop()
    for name in OURS:
        path = home / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def sockets() -> set[Path]:
    return set(Path("/tmp").glob("vscode-*"))  # noqa: S108


def test_a_file_is_edited_and_a_terminal_is_in_the_job(
    portal: Instance, home: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    before = sockets()
    open_lab(page, portal, USER)
    with page.expect_popup() as popup:
        card(page, "Tools", "VS Code").click()
    code = popup.value
    # A folder runs nothing by itself until it is trusted, as in every VS Code.
    expect(code.get_by_text("Restricted Mode is intended for safe code browsing")).to_be_visible()
    code.get_by_text("Manage", exact=True).click()
    code.get_by_role("button", name="Trust", exact=True).click()
    expect(code.get_by_text("You trust this folder")).to_be_visible()
    modal = code.locator(".monaco-modal-editor-block")
    modal.get_by_role("button", name=re.compile("^Close")).first.click()
    expect(modal).to_have_count(0)
    code.get_by_role("treeitem", name="hello.py").dblclick()
    editor = code.get_by_role("textbox", name=re.compile("hello.py"))
    expect(editor).to_be_focused()
    code.keyboard.press("Control+End")
    code.keyboard.type(" # by hand")
    code.keyboard.press("Control+s")
    program = home / "hello.py"
    until(lambda: "by hand" in program.read_text(), seconds=20, what="the file is saved")

    # Its terminal is in the job, with the job's GPU, and has no token of the session.
    code.keyboard.press("Control+Backquote")
    expect(code.locator(".xterm-cursor-layer, .xterm-screen").first).to_be_visible()
    code.keyboard.type(
        "module load pytorch; echo $PORTAL_JOB_ID $CUDA_VISIBLE_DEVICES $(which python)"
        " $(env | grep -c JUPYTERHUB_API_TOKEN) > seen.txt\n"
    )
    seen = home / "seen.txt"
    until(lambda: seen.exists() and bool(seen.read_text()), seconds=20, what="the terminal answers")
    (job,) = portal.jobs(user=USER)
    number, gpu, python, tokens = seen.read_text().split()
    assert (number, gpu.isdecimal(), tokens) == (job, True, "0")
    assert "kernel-pytorch" in python
    # At its sockets it takes orders: they are where nobody else comes.
    owned = {path.name for path in sockets() - before if path.owner() == USER}
    assert owned == set()
    photograph(code, "vscode")
