"""JupyterLab in a browser: how tests come to it, and when it has come to rest."""

import pwd
import re
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from tests.instance import PASSWORD, Instance


def log_in(page: Page, portal: Instance, name: str, to: str | None = None) -> None:
    """Log in; without ``to`` as a person comes, who is led to the session or to the form."""
    page.goto(f"{portal.url}/hub/login?next={quote(to, safe='')}" if to else portal.url)
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def wait_for_launcher(page: Page) -> None:
    """Wait until an empty JupyterLab is open: its launcher takes the focus last of all.

    It does so up to seconds after all is visible, and away from what a test has given it to.
    """
    expect(page.locator(".jp-Launcher")).to_be_focused(timeout=90_000)


def forget_screen(portal: Instance, name: str) -> None:
    """Have nothing on somebody's screen the next time: no open tabs, no panels."""
    workspaces = f"{pwd.getpwnam(name).pw_dir}/.jupyter/lab/workspaces"
    portal.slurm("/bin/rm", "-rf", workspaces, user=name)


def forget_theme(portal: Instance, name: str) -> None:
    """Have JupyterLab's theme follow the system, also where somebody has chosen one."""
    own = ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"
    portal.slurm("/bin/rm", "-rf", f"{pwd.getpwnam(name).pw_dir}/{own}", user=name)


def _choose(page: Page, menu: str, name: str) -> None:
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=name).click()


def _go_home(page: Page) -> None:
    page.locator(".jp-BreadCrumbs-home").click()
    expect(page.locator(".jp-BreadCrumbs-item")).to_have_count(0)


def _empty(page: Page) -> None:
    """Close all that is open, kernels too, and be at home in the file browser."""
    page.bring_to_front()
    page.keyboard.press("Escape")  # a menu
    files = page.get_by_role("tab", name=re.compile("^File Browser"))
    if files.get_attribute("aria-selected") != "true":
        files.click()
    _go_home(page)
    if page.locator(".jp-Notebook").count():
        _choose(page, "Kernel", "Shut Down All Kernels")
        page.get_by_role("button", name="Shut Down All").click()
    _choose(page, "File", "Close All Tabs")
    discard = page.get_by_role("button", name="Discard")
    launcher = page.locator(".jp-Launcher:focus")
    expect(discard.or_(launcher).first).to_be_visible()
    if discard.count():
        discard.click()
    wait_for_launcher(page)


def open_lab(page: Page, portal: Instance, name: str, to: str | None = None) -> None:
    """Have an empty JupyterLab: the one that is open, or log in to the session that runs."""
    if page.url.startswith(f"{portal.host_of(name)}/user/{name}/lab"):
        return _empty(page)
    forget_screen(portal, name)
    log_in(page, portal, name, to)
    wait_for_launcher(page)
    # A page that was just closed may save its folder after it was forgotten.
    if page.locator(".jp-BreadCrumbs-item").count():
        _go_home(page)


def wait_for_notebook(page: Page) -> None:
    """Wait until JupyterLab has opened a notebook: its active cell takes the focus last of all."""
    cell = page.locator(".jp-Notebook-cell.jp-mod-active:focus-within")
    expect(cell).to_be_visible(timeout=90_000)


def item(page: Page, name: str) -> Locator:
    """Return a folder or a file in the file browser."""
    return page.locator(".jp-DirListing-item", has=page.get_by_text(name, exact=True))


def open_item(page: Page, name: str) -> None:
    """Open a file, or a folder, which the file browser then shows: a launcher starts there."""
    row = item(page, name)
    is_folder = row.get_attribute("data-isdir") == "true"
    row.dblclick()
    if is_folder:
        expect(page.locator(".jp-BreadCrumbs-item").last).to_have_text(name)
