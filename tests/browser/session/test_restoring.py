"""What was on the screen comes back, and JupyterLab does nothing for nothing until it is there."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, Response, Route, expect

from tests.browser.lab import open_item, open_lab, wait_for_launcher
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

pytestmark = pytest.mark.browser

USER = USERS[4]
FILE = "of-the-screen.txt"
SAVING_MS = 3000
"""JupyterLab waits for further changes before it saves, and a while for the answer."""
WORKSPACES = "**/lab/api/workspaces/*"


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USER) as visitor:
        visitor.run(f"open({FILE!r}, 'w').close()")
        yield visitor
        visitor.run(f"import os; os.remove({FILE!r})")


def hold(route: Route) -> None:
    """Leave what is to be saved without an answer."""
    if route.request.method != "PUT":
        route.continue_()


def saves_it(answer: Response) -> bool:
    """Say whether what was saved holds the file's tab."""
    request = answer.request
    return request.method == "PUT" and FILE in (request.post_data or "") and answer.ok


@pytest.mark.usefixtures("user")
def test_jupyterlab_does_not_wait_for_what_it_saves(portal: Instance, page: Page) -> None:
    page.route(WORKSPACES, hold)
    open_lab(page, portal, USER, to=f"/user/{USER}/lab")
    expect(page.locator(".jp-DirListing-item").first).to_be_visible()


@pytest.mark.usefixtures("user")
def test_jupyterlab_does_not_ask_whether_it_should_be_built(portal: Instance, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_lab(page, portal, USER, to=f"/user/{USER}/lab")
    # It asks as one of its plugins starts: before the page is at rest, as it does for terminals.
    assert [url for url in asked if "/api/terminals" in url]
    assert [url for url in asked if "/lab/api/build" in url] == []


@pytest.mark.usefixtures("user")
def test_what_was_open_comes_back(portal: Instance, page: Page) -> None:
    open_lab(page, portal, USER, to=f"/user/{USER}/lab")
    with page.expect_response(saves_it):
        open_item(page, FILE)
    tab = page.get_by_role("main").get_by_role("tab", name=FILE)
    expect(tab).to_be_visible()
    page.route(WORKSPACES, hold)
    page.reload()
    expect(tab).to_be_visible()
    page.unroute(WORKSPACES)
    # As JupyterLab has it: a copy of the screen, and an empty one.
    page.goto(f"{portal.url}/user/{USER}/lab/workspaces/copy?clone")
    expect(tab).to_be_visible()
    expect(page).not_to_have_url(re.compile("clone"))
    page.goto(f"{portal.url}/user/{USER}/lab?reset")
    wait_for_launcher(page)
    expect(tab).to_have_count(0)


@pytest.mark.usefixtures("user")
def test_what_has_not_changed_is_not_saved_again(portal: Instance, page: Page) -> None:
    open_lab(page, portal, USER, to=f"/user/{USER}/lab")
    refresh = page.get_by_role("button", name="Refresh the file browser")
    # The first look at the folder is the one that finds how wide the columns are.
    refresh.click()
    page.wait_for_timeout(SAVING_MS)
    saved: list[Request] = []
    page.on("request", lambda request: saved.append(request) if request.method == "PUT" else None)
    with page.expect_response(re.compile("/api/contents")):
        refresh.click()
    page.wait_for_timeout(SAVING_MS)
    assert [request.url for request in saved] == []
    with page.expect_request(lambda request: request.method == "PUT"):
        page.locator(".jp-DirListing-headerItem", has_text="Name").click()
