"""No entry of JupyterLab's menus fails: each is chosen, with a notebook open."""

import pwd
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Error, Locator, Page, Response, expect

from tests.browser.lab import open_lab, wait_for_notebook
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.long]

USER = USERS[4]
NOTEBOOK = "Untitled.ipynb"
MENUS = ("File", "Edit", "View", "Run", "Kernel", "Git", "Tabs", "Settings", "Help")
FOLDER = "untitled folder"
TAB = ".jp-mod-main-area .lm-TabBar-tab, .lm-DockPanel-tabBar .lm-TabBar-tab"
CONTEXTS = {
    "a folder": f".jp-DirListing-item:has-text('{FOLDER}')",
    "a notebook in the file browser": f".jp-DirListing-item:has-text('{NOTEBOOK}')",
    "the file browser": ".jp-DirListing-content",
    "a cell": ".jp-Notebook-cell .jp-InputArea-editor",
    "an output": ".jp-Notebook-cell .jp-OutputArea-output",
    "a tab": f":is({TAB}):has-text('{NOTEBOOK}')",
}
"""What has a menu of its own, which the right button opens."""
# They lead away from JupyterLab: `test_journey` and `test_endings` choose two, the last is below.
LEAVING = {"Stop Session…", "Hub Control Panel", "Log Out"}
# What these turn on stands in the way of the next.
TWICE = {"Simple Interface", "Presentation Mode", "Fullscreen Mode"}
SETTLES = 400
"""Milliseconds in which what was chosen shows itself, or its failure."""
ATTEMPTS = 3
"""A dialog that the entry before has opened late closes the menu, or covers the tab."""
FAILURE = re.compile(r"error|fail|cannot|could not|can't", re.IGNORECASE)
ITEM = ".lm-Menu-item:visible:not([data-type=separator]):not(.lm-mod-disabled)"


@pytest.fixture
def notebook(portal: Instance, page: Page, visit: Callable[[str], Visitor]) -> Iterator[Page]:
    """A notebook in JupyterLab, with its kernel; what the walk has made goes with it."""
    home = pwd.getpwnam(USER).pw_dir

    def clear() -> None:
        made = [str(path) for path in Path(home).glob("[Uu]ntitled*")]
        settings = f"{home}/.jupyter/lab/user-settings"
        portal.slurm("/bin/rm", "-rf", *made, settings, user=USER)

    clear()
    visit(USER).start_and_wait(gpus=0)
    open_lab(page, portal, USER)
    page.locator(".jp-LauncherCard", has_text="Python 3").first.click()
    wait_for_notebook(page)
    # Until the kernel answers, JupyterLab opens no menu for the right button in a cell.
    expect(page.get_by_text("Python 3 | Idle")).to_be_visible()
    yield page
    clear()


@dataclass
class Walk:
    """Chooses entries of menus, and notes what fails."""

    page: Page
    chosen: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """What an entry before it has made impossible."""
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.context.on("response", self._note)

    def through(self, *path: str) -> None:
        """Choose each entry of a menu, which a path of names leads to, and of the menus in it."""
        entries = self._opened(*path).locator(ITEM)
        kinds = {
            one.locator(".lm-Menu-itemLabel").inner_text(): one.get_attribute("data-type")
            for one in entries.all()
        }
        self._come_back()
        for name, kind in kinds.items():
            if kind == "submenu":
                self.through(*path, name)
            elif name not in LEAVING:
                for _ in range(2 if name in TWICE else 1):
                    self._choose(*path, name)
                self._come_back()

    def _opened(self, *path: str) -> Locator:
        menus = self.page.locator(".lm-Menu:visible")
        if path[0] in CONTEXTS:
            self._open_context(path[0])
        else:
            bar = self.page.locator("#jp-MainMenu")
            bar.get_by_role("menuitem", name=path[0], exact=True).click()
        for depth, name in enumerate(path[1:], start=1):
            _entry(menus.nth(depth - 1), name).hover()
            expect(menus).to_have_count(depth + 1)
        return menus.nth(len(path) - 1)

    def _open_context(self, name: str) -> None:
        target = self.page.locator(CONTEXTS[name]).first
        if name == "an output" and not target.count():
            self._run_a_cell()
        # Near its lower edge: above that of the file browser are files, with menus of their own.
        box = target.bounding_box()
        assert box is not None
        beside = {"x": box["width"] / 2, "y": box["height"] - 4}
        target.click(button="right", position=beside)  # type: ignore[arg-type]
        expect(self.page.locator(ITEM).first).to_be_visible()

    def _run_a_cell(self) -> None:
        cell = self.page.locator(".jp-Notebook-cell .cm-content").first
        cell.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type("print(6 * 7)")
        self.page.keyboard.press("Control+Enter")
        expect(self.page.locator(CONTEXTS["an output"]).first).to_have_text(re.compile("42"))

    def _choose(self, *path: str) -> None:
        where = " > ".join(path)
        self.chosen.append(where)
        for _ in range(ATTEMPTS):
            entry = _entry(self._opened(*path[:-1]), path[-1])
            if not entry.count():
                self.gone.append(where)
                return
            with suppress(Error):
                entry.click(timeout=5_000)
                self.page.wait_for_timeout(SETTLES)
                return
            self._come_back()
        self._failed("the menu closes by itself")

    def _note(self, response: Response) -> None:
        if response.status >= 400:
            self._failed(f"{response.request.method} {response.url}: {response.status}")

    def _look(self) -> None:
        dialogs = self.page.locator(".jp-Dialog-header").filter(has_text=FAILURE)
        for seen in dialogs.or_(self.page.locator(".Toastify__toast--error")).all():
            self._failed(seen.inner_text())

    def _failed(self, what: str) -> None:
        self.failures.append(f"{self.chosen[-1] if self.chosen else 'before'}: {what}")

    def _come_back(self) -> None:
        """Be at the notebook and at home again, with no menu, dialog or window open."""
        page = self.page
        for other in page.context.pages:
            if other is not page:
                other.close()
        self._look()
        for attempt in range(ATTEMPTS):
            self._leave_what_is_open()
            try:
                return self._show_notebook()
            except Error:
                if attempt == ATTEMPTS - 1:
                    raise

    def _leave_what_is_open(self) -> None:
        page = self.page
        open_ones = page.locator(".lm-Menu:visible, .jp-Dialog, #modal-command-palette:visible")
        for _ in range(10):
            if not open_ones.count():
                break
            page.keyboard.press("Escape")
            page.wait_for_timeout(100)
        expect(open_ones).to_have_count(0)

    def _show_notebook(self) -> None:
        page = self.page
        if page.locator(".jp-BreadCrumbs-item").count():
            page.locator(".jp-BreadCrumbs-home").click(timeout=5_000)
        tab = page.locator(TAB).filter(has_text=NOTEBOOK)
        if tab.count():
            tab.first.click(timeout=5_000)
        else:
            page.goto(f"{page.url.partition('/lab')[0]}/lab/tree/{NOTEBOOK}")
            wait_for_notebook(page)


def _entry(menu: Locator, name: str) -> Locator:
    label = menu.page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{re.escape(name)}$"))
    return menu.locator(ITEM).filter(has=label).first


@pytest.mark.parametrize("menu", MENUS)
def test_no_entry_of_a_menu_fails(notebook: Page, menu: str) -> None:
    bar = notebook.locator("#jp-MainMenu .lm-MenuBar-itemLabel")
    expect(bar).to_have_text(list(MENUS))
    walk = Walk(notebook)
    walk.through(menu)
    assert len(walk.chosen) > 4
    assert walk.failures == []
    # An entry before these has shut the kernel down, or come to the last cell.
    assert set(walk.gone) <= {
        "Kernel > Shut Down All Kernels…",
        "Run > Run Selected Cell and All Below",
    }


@pytest.mark.parametrize("where", CONTEXTS)
def test_no_entry_of_a_context_menu_fails(portal: Instance, notebook: Page, where: str) -> None:
    portal.slurm("/bin/mkdir", f"{pwd.getpwnam(USER).pw_dir}/{FOLDER}", user=USER)
    notebook.get_by_role("button", name="Refresh the file browser").click()
    expect(notebook.locator(CONTEXTS["a folder"])).to_be_visible()
    # Consoles and logs that entries open below leave the cells room.
    notebook.set_viewport_size({"width": 1280, "height": 2400})
    walk = Walk(notebook)
    walk.through(where)
    assert len(walk.chosen) > 4
    assert walk.failures == []
    assert walk.gone == []


def test_who_chooses_to_log_out_is_asked_what_becomes_of_the_session(notebook: Page) -> None:
    notebook.on("dialog", lambda dialog: dialog.accept())
    notebook.get_by_role("menuitem", name="File", exact=True).click()
    notebook.get_by_role("menuitem", name="Log Out", exact=True).click()
    expect(notebook).to_have_url(re.compile("/hub/logout"))
    expect(notebook.locator("#stop-and-leave")).to_be_visible()
