"""A notebook that is shared: its reader opens it in a session of their own, and others do not."""

import json
import pwd
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser import axe
from tests.browser.fit import assert_dialog_is_fit
from tests.browser.keyboard import press, tab_to
from tests.browser.lab import item, log_in, open_lab, wait_for_notebook
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

pytestmark = pytest.mark.browser

OWNER, READER, STRANGER = USERS[:3]
NAME = "digits.ipynb"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# It says of itself that it is trusted, and tries what it can in the browser of whoever opens it.
_ATTACK = (
    "<script>window.top.document.title = 'taken'; document.title = 'taken';"
    "fetch('/hub/api/user')</script>"
    "<img src=x onerror=\"window.top.document.title = 'taken'\">"
)
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Digits\n" + _ATTACK},
        {"cell_type": "markdown", "id": "c", "metadata": {}, "source": r"$$\frac{1}{n}$$"},
        {
            "cell_type": "code",
            "id": "b",
            "execution_count": 1,
            "metadata": {"trusted": True},
            "source": "print('98.9 %')",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "98.9 %\n"},
                {"output_type": "display_data", "metadata": {}, "data": {"text/html": _ATTACK}},
                {
                    "output_type": "display_data",
                    "metadata": {},
                    "data": {"application/javascript": "document.title = 'taken'"},
                },
            ],
        },
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def home_of(name: str) -> Path:
    return Path(pwd.getpwnam(name).pw_dir)


@pytest.fixture(scope="module")
def sessions(portal: Instance) -> Iterator[dict[str, Visitor]]:
    """The sessions of the owner and the reader, for all tests of this module."""
    with session_of(portal, OWNER) as owner, session_of(portal, READER) as reader:
        yield {OWNER: owner, READER: reader}


@pytest.fixture
def owner(portal: Instance, sessions: dict[str, Visitor]) -> Iterator[Visitor]:
    """The owner's session, with the notebook in the home and nothing shared."""
    owner = sessions[OWNER]
    notebook, places = home_of(OWNER) / NAME, home_of(OWNER) / ".jupyter/lab/workspaces"
    shared = Path(portal.settings["session"]["shares_folder"].replace("{user}", OWNER))
    portal.slurm("/bin/rm", "-rf", str(places), str(shared), user=OWNER)
    portal.slurm("/usr/bin/tee", str(notebook), user=OWNER, stdin=json.dumps(NOTEBOOK))
    yield owner
    portal.slurm("/bin/rm", "-rf", str(places), str(shared), str(notebook), user=OWNER)


@pytest.fixture
def reader(portal: Instance, sessions: dict[str, Visitor]) -> Iterator[Visitor]:
    reader = sessions[READER]
    if reader.server() is None:
        reader.start_and_wait(gpus=0)
    left = [str(home_of(READER) / name) for name in (".jupyter/lab/workspaces", NAME)]
    portal.slurm("/bin/rm", "-rf", *left, user=READER)
    yield reader
    portal.slurm("/bin/rm", "-rf", *left, user=READER)


def share(owner: Visitor, kind: str, *names: str) -> str:
    """Share the notebook; return the link below the reader's session."""
    body = {"path": NAME, "kind": kind, "names": names}
    answer = owner.session("POST", "/portal/shares", json=body)
    assert answer.status_code == 201, answer.text
    return f"/{answer.json()['link']}"


def test_a_shared_notebook_opens_for_its_reader(
    portal: Instance,
    chromium: Browser,
    page: Page,
    owner: Visitor,
    reader: Visitor,
    photograph: Callable[[Page, str], None],
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=portal.url)
    open_lab(page, portal, OWNER)
    item(page, NAME).click(button="right")
    # JupyterLab's own link leads each reader to a file of their own.
    expect(page.get_by_role("menuitem", name="Copy Shareable Link")).to_have_count(0)
    page.get_by_role("menuitem", name="Share…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Share with")).to_be_focused()
    dialog.get_by_label("User names").fill("nobody-of-this-name")
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("There is no user nobody-of-this-name")
    dialog.get_by_label("User names").fill(READER)
    dialog.get_by_label("User names").press("Enter")
    expect(dialog.get_by_role("listitem")).to_contain_text(READER)
    expect(dialog.get_by_role("status")).to_contain_text("The link was copied")
    assert_dialog_is_fit(page, NAME)
    photograph(page, "share")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{portal.url}/hub/user-redirect/portal/shared/{OWNER}/")

    theirs = chromium.new_context(viewport={"width": 1440, "height": 900})
    other = theirs.new_page()
    log_in(other, portal, READER, to=link.removeprefix(portal.url))
    expect(other.get_by_role("heading", name=NAME)).to_be_visible()
    assert f"/user/{READER}/portal/shared/{OWNER}/" in other.url
    frame = other.frame_locator("iframe")
    expect(frame.get_by_text("98.9 %").last).to_be_visible()
    expect(frame.locator("math mfrac")).to_be_visible()
    expect(other).to_have_title(f"{NAME} · shared by {OWNER}")
    for scheme in SCHEMES:
        other.emulate_media(color_scheme=scheme)
        # The notebook is as light or as dark as the page around it.
        ground = frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(17, 17, 17)")
        for width, height in ((360, 740), (1440, 900)):
            other.set_viewport_size({"width": width, "height": height})
            photograph(other, f"shared-{scheme}-{width}")
            assert other.evaluate("document.documentElement.scrollWidth") <= width
    # What the frame holds is the owner's.
    assert axe.faults(other, "header") == []

    # The copy is the reader's, and no more trusted than what anybody sends.
    other.get_by_role("button", name="Open My Own Copy").click()
    wait_for_notebook(other)
    expect(other.locator(".jp-OutputArea").get_by_text("98.9 %")).to_be_visible()
    expect(other).not_to_have_title("taken")
    copy = home_of(READER) / NAME
    assert json.loads(copy.read_text()) == NOTEBOOK
    assert copy.stat().st_uid == pwd.getpwnam(READER).pw_uid
    theirs.close()

    # With a group, too, who has no names to type.
    group = owner.session("GET", "/portal/shares").json()["groups"][0]
    dialog.get_by_label("Share with").select_option(label=f"The group {group}")
    expect(dialog.get_by_label("User names")).to_be_hidden()
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.get_by_role("listitem").filter(has_text=group)).to_be_visible()

    # Stopped, the link is dead.
    for name in (group, READER):
        dialog.get_by_role("button", name=f"Stop sharing with {name}").click()
        expect(dialog.get_by_role("listitem").filter(has_text=name)).to_have_count(0)
    path = link.partition("/hub/user-redirect")[2]
    assert reader.session("GET", path).status_code == 404


@pytest.mark.usefixtures("owner")
def test_a_share_that_takes_long_keeps_the_focus_and_tells_the_truth(
    portal: Instance, page: Page
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=portal.url)
    open_lab(page, portal, OWNER)
    item(page, NAME).click(button="right")
    page.get_by_role("menuitem", name="Share…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("User names").fill(READER)
    held: list[Route] = []
    is_slow = [True]

    def hold(route: Route) -> None:
        if is_slow:
            held.append(route)
        else:
            route.continue_()

    page.route("**/portal/shares*", hold)
    press(page, dialog.get_by_role("button", name="Share", exact=True))
    page.wait_for_timeout(6_000)  # after which a page may not copy by the old way any more
    expect(dialog.get_by_role("button", name="Share", exact=True)).to_be_focused()
    is_slow.clear()
    for route in held:
        route.continue_()
    status = dialog.get_by_role("status")
    expect(status).not_to_be_empty()
    if "copied" in status.inner_text():
        assert page.evaluate("navigator.clipboard.readText()").startswith(portal.url)
    else:
        expect(status).to_contain_text(f"{portal.url}/hub/user-redirect/portal/shared/{OWNER}/")
    # Keys still reach the dialog.
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


@pytest.mark.usefixtures("owner")
def test_it_is_shared_and_taken_back_by_keyboard(portal: Instance, page: Page) -> None:
    open_lab(page, portal, OWNER)
    item(page, NAME).click()
    page.keyboard.press("Enter")
    wait_for_notebook(page)
    expect(page.get_by_text(re.compile(r"\| Idle$"))).to_be_visible()
    page.keyboard.press("Control+Shift+C")
    expect(page.locator("#modal-command-palette input")).to_be_focused()
    page.keyboard.type("Share…")
    expect(page.locator(".lm-CommandPalette-item.lm-mod-active")).to_contain_text("Share…")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Share with")).to_be_focused()
    tab_to(page, dialog.get_by_label("User names"))
    page.keyboard.type(READER)
    press(page, dialog.get_by_role("button", name="Share", exact=True))
    shared = dialog.get_by_role("listitem").filter(has_text=READER)
    expect(shared).to_be_visible()
    press(page, dialog.get_by_role("button", name=f"Stop sharing with {READER}"))
    expect(shared).to_have_count(0)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_only_those_can_read_it_with_whom_it_is_shared(
    portal: Instance, owner: Visitor, reader: Visitor, visit: Callable[[str], Visitor]
) -> None:
    stranger = visit(STRANGER)
    stranger.start_and_wait(gpus=0)

    def seen(path: str) -> tuple[int, int]:
        return reader.session("GET", path).status_code, stranger.session("GET", path).status_code

    assert seen(share(owner, "people", READER)) == (200, 404)
    assert seen(share(owner, "people", READER, STRANGER)) == (200, 200)
    assert seen(share(owner, "link")) == (200, 200)
    (group,) = owner.session("GET", "/portal/shares").json()["groups"]
    assert group.endswith("-data-scientists")
    assert seen(share(owner, "group", group)) == (200, 200)
    foreign = {"path": NAME, "kind": "group", "names": ["root"]}
    assert owner.session("POST", "/portal/shares", json=foreign).status_code == 400

    # By the files themselves, too: neither the names nor what is there.
    shared = Path(portal.settings["session"]["shares_folder"].replace("{user}", OWNER))
    path = share(owner, "people", READER)
    _, _, _, share_id, name = path.split("/")[-5:]
    file = f"{shared}/{share_id}/{name}"
    assert "98.9 %" in portal.slurm("/bin/cat", file, user=READER)
    for argv in (["/bin/cat", file], ["/bin/ls", str(shared)]):
        with pytest.raises(RuntimeError, match="denied"):
            portal.slurm(*argv, user=STRANGER)

    # Nor can the owner show readers a file of their own as if it were shared.
    secret = home_of(READER) / "secret.ipynb"
    portal.slurm("/usr/bin/tee", str(secret), user=READER, stdin="{}")
    portal.slurm("/bin/ln", "-sf", str(secret), f"{shared}/{share_id}/x.ipynb", user=OWNER)
    assert reader.session("GET", path.replace(name, "x.ipynb")).status_code == 404
    portal.slurm("/bin/rm", str(secret), user=READER)


def test_without_a_session_the_link_leads_to_the_form_and_then_to_the_notebook(
    portal: Instance, page: Page, owner: Visitor, reader: Visitor
) -> None:
    reader.leave()
    path = share(owner, "people", READER)
    log_in(page, portal, READER, to=f"/hub/user-redirect{path}")
    page.locator("label", has_text="No GPU").first.click()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible(timeout=90_000)
