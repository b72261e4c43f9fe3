"""Another user's token, a session's token and none, on every address that there is."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests import faults, routes
from tests.instance import Instance
from tests.routes import Route
from tests.visitor import Visitor

# For everybody: the way to the login, what the login page is made of, and what names nobody.
OPEN = {
    "/hub/login",
    "/hub/logout",
    "/hub/error/400",
    "/hub/health",
    "/hub/api/health",
    "/hub/api",
    "/hub/portal/look.css",
    "/user/OWNER/api",
    "/user/OWNER/logout",
    "/favicon.ico",
}
# For every user, about themselves.
OWN = {"/hub/api/user", "/hub/api/gpu-session/extend"}
# Sends to another address of the same kind, which asks for the login.
ELSEWHERE = {
    "AddSlashHandler",
    "NotebooksRedirectHandler",
    "RedirectWithParams",
    "TrailingSlashHandler",
}
REFUSED = {400, 401, 403, 404, 405, 424}
KERNEL = "12345678-1234-1234-1234-123456789012"
VALUES = (
    "restart",
    "saving",
    KERNEL,
    "/x",
    "lab",
    "robots.txt",
    "favicon.ico",
    "400",
    "0" * 12,
    "x",
)
CLUSTER = [
    Route(f"/services/cluster/{path}", "Handler", ("GET",))
    for path in ("", "events", "api/v1/cluster", "api/v1/jobs", "api/v1/events")
]
ADMINS = [
    Route("/services/cluster/stop", "Handler", ("POST",)),
    Route("/services/cluster/api/v1/sessions", "Handler", ("GET",)),
    Route("/services/cluster/api/v1/sessions/([^/]+)/([^/]*)", "Handler", ("DELETE",)),
    Route("/services/cluster/api/v1/usage", "Handler", ("GET",)),
    Route(r"/services/cluster/api/v1/usage\.csv", "Handler", ("GET",)),
]


@pytest.fixture(scope="module")
def hub_routes(portal: Instance) -> list[Route]:
    """What the running hub's programs and settings make."""
    process = Path("/proc", str(faults.pid_of("hub")))
    python = process.joinpath("cmdline").read_text().split("\0")[0]
    environment = process.joinpath("environ").read_text().split("\0")
    return routes.of_the_hub(
        Path(python), dict(line.split("=", 1) for line in environment if "=" in line)
    )


@pytest.fixture(scope="module")
def session_routes(portal: Instance, owner: Visitor) -> list[Route]:
    """What the programs of the running sessions make."""
    return routes.of_a_session(Path(portal.settings["session"]["python"]), owner.name)


@pytest.fixture(scope="module")
def strangers(stranger: Visitor, session_token: str) -> dict[str, dict[str, str]]:
    """The headers of who is not the owner."""
    return {
        "nobody": {},
        "another user": {"Authorization": f"token {stranger.token()}"},
        "another session": {"Authorization": f"token {session_token}"},
    }


def requests(found: list[Route], owner: str) -> Iterator[tuple[Route, str, str]]:
    for route in found:
        path = routes.address(route.pattern, owner, *VALUES)
        for method in route.methods:
            yield route, method, path


def is_refused(answer: httpx.Response) -> bool:
    ways = ("/hub/login", "/hub/api/oauth2/authorize", "/hub/portal/gate")
    is_sent_there = any(way in answer.headers.get("Location", "") for way in ways)
    return answer.status_code in REFUSED or is_sent_there


def test_the_hub_and_a_session_answer_at_many_addresses(
    hub_routes: list[Route], session_routes: list[Route]
) -> None:
    """Otherwise the tests below would prove nothing."""
    assert {"/hub/api/gpu-session/port", "/hub/api/shutdown"} <= {r.pattern for r in hub_routes}
    handlers = {route.handler for route in session_routes}
    assert {
        "TermSocket",
        "ContentsHandler",
        "VisitsHandler",
        "OpenHandler",
        "LabHandler",
    } <= handlers


def test_another_users_token_opens_no_route(
    http: httpx.Client,
    owner: Visitor,
    strangers: dict[str, dict[str, str]],
    hub_routes: list[Route],
    session_routes: list[Route],
) -> None:
    opened = []
    for route, method, path in requests([*hub_routes, *session_routes, *ADMINS], owner.name):
        if path.replace(owner.name, "OWNER") in OPEN or route.handler in ELSEWHERE:
            continue
        for who, headers in strangers.items():
            answer = http.request(method, path, headers=headers)
            is_own = path in OWN and who != "nobody"
            if answer.status_code >= 500 or not (is_own or is_refused(answer)):
                opened.append(
                    (who, method, path, answer.status_code, answer.headers.get("Location"))
                )
    assert not opened, "\n".join(map(str, opened))
    assert owner.server() is not None


def test_nobody_sees_the_cluster_without_a_login(http: httpx.Client, owner: Visitor) -> None:
    for _, method, path in requests(CLUSTER, owner.name):
        assert is_refused(http.request(method, path)), path


def test_no_state_changes_by_a_request_that_another_page_can_forge(
    http: httpx.Client, owner: Visitor, hub_routes: list[Route], session_routes: list[Route]
) -> None:
    """XSRF: the user's own cookies, as the browser adds them, but without the page's token."""
    owner.http.get(f"/user/{owner.name}/lab")
    cookies = "; ".join(f"{one.name}={one.value}" for one in owner.http.cookies.jar)
    foreign = {
        "Cookie": cookies,
        "Origin": "https://evil.example",
        "Referer": "https://evil.example/",
        "Content-Type": "application/x-www-form-urlencoded",
        "Sec-Fetch-Site": "cross-site",
    }
    taken = []
    for route, method, path in requests([*hub_routes, *session_routes, *ADMINS], owner.name):
        if method == "GET" or route.handler in ELSEWHERE:
            continue
        answer = http.request(method, path, headers=foreign, content=b"")
        if answer.status_code not in REFUSED and not is_refused(answer):
            taken.append((method, path, answer.status_code))
    assert not taken, "\n".join(map(str, taken))
    assert owner.server() is not None
