"""No entry of JupyterLab's menus fails: each is chosen, with a notebook open."""

import pwd
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Error, Locator, Page, Response, expect

from tests.browser.lab import open_lab, wait_for_notebook
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.long]

USER = USERS[4]
NOTEBOOK = "Untitled.ipynb"
MENUS = ("File", "Edit", "View", "Run", "Kernel", "Git", "Tabs", "Settings", "Help")
# They lead away from JupyterLab: `test_journey` and `test_endings` choose two, the last is below.
LEAVING = {"Stop Session…", "Hub Control Panel", "Log Out"}
# What these turn on stands in the way of the next.
TWICE = {"Simple Interface", "Presentation Mode", "Fullscreen Mode"}
SETTLES = 400
"""Milliseconds in which what was chosen shows itself, or its failure."""
ATTEMPTS = 3
"""A dialog that the entry before has opened late closes the menu."""
FAILURE = re.compile(r"error|fail|cannot|could not|can't", re.IGNORECASE)
ITEM = ".lm-Menu-item:visible:not([data-type=separator]):not(.lm-mod-disabled)"


@pytest.fixture
def notebook(portal: Instance, page: Page, visit: Callable[[str], Visitor]) -> Iterator[Page]:
    """A notebook in JupyterLab, with its kernel; what the walk has made goes with it."""
    home = pwd.getpwnam(USER).pw_dir
    made = [f"{home}/{name}" for name in (NOTEBOOK, "Untitled1.ipynb", "Untitled-Copy1.ipynb")] + [
        f"{home}/untitled.{end}" for end in ("txt", "md", "py", "r")
    ]
    settings = f"{home}/.jupyter/lab/user-settings"
    portal.slurm("/bin/rm", "-rf", *made, settings, user=USER)
    visit(USER).start_and_wait(gpus=0)
    open_lab(page, portal, USER)
    page.locator(".jp-LauncherCard", has_text="Python 3").first.click()
    wait_for_notebook(page)
    yield page
    portal.slurm("/bin/rm", "-rf", *made, settings, user=USER)


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
        bar = self.page.locator("#jp-MainMenu")
        bar.get_by_role("menuitem", name=path[0], exact=True).click()
        for depth, name in enumerate(path[1:], start=1):
            _entry(menus.nth(depth - 1), name).hover()
            expect(menus).to_have_count(depth + 1)
        return menus.nth(len(path) - 1)

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
        """Be at the notebook again, with no menu, dialog or window open."""
        page = self.page
        for other in page.context.pages:
            if other is not page:
                other.close()
        self._look()
        open_ones = page.locator(".lm-Menu:visible, .jp-Dialog, #modal-command-palette:visible")
        for _ in range(5):
            if open_ones.count():
                page.keyboard.press("Escape")
        expect(open_ones).to_have_count(0)
        tab = page.locator(".jp-mod-main-area .lm-TabBar-tab, .lm-DockPanel-tabBar .lm-TabBar-tab")
        if tab.filter(has_text=NOTEBOOK).count():
            tab.filter(has_text=NOTEBOOK).first.click()
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


def test_who_chooses_to_log_out_is_asked_what_becomes_of_the_session(notebook: Page) -> None:
    notebook.on("dialog", lambda dialog: dialog.accept())
    notebook.get_by_role("menuitem", name="File", exact=True).click()
    notebook.get_by_role("menuitem", name="Log Out", exact=True).click()
    expect(notebook).to_have_url(re.compile("/hub/logout"))
    expect(notebook.locator("#stop-and-leave")).to_be_visible()
