"""Sessions that nobody uses end; those that work go on, whether a browser is open or not.

The user of these tests is in a group whose sessions may be unused for 18 seconds. The GPUs of the
test's nodes are stand-ins that cannot work, so a stand-in for NVIDIA's library says that they do:
tests/nvml.
"""

import json
import time
from collections.abc import Callable, Iterator

import pytest

from tests import nvml
from tests.instance import IDLER, USERS, Instance
from tests.visitor import Visitor, session_of
from tests.waiting import until

pytestmark = pytest.mark.waits

Visit = Callable[[str], Visitor]
LIMIT_SECONDS = 18
# The limit, the rounding of a terminal's times, a look, a round of the culler, the job's end.
ENDS_WITHIN_SECONDS = LIMIT_SECONDS + 42


@pytest.fixture
def user(visit: Visit) -> Visitor:
    return visit(IDLER)


def idle(user: Visitor) -> dict[str, float | None]:
    """Return what the session knows of its use, as a page reads it."""
    answer = user.session("GET", "/portal/idle")
    answer.raise_for_status()
    return dict(answer.json())


def limit_is_known(user: Visitor) -> None:
    until(
        lambda: idle(user)["limit_seconds"] == LIMIT_SECONDS,
        seconds=30,
        what="the session has heard its limit",
    )


def lives_on(user: Visitor, portal: Instance, job_id: str, limits: float = 2.5) -> None:
    """Check that the session is there and in use all the while, for some times the limit."""
    seconds = limits * LIMIT_SECONDS
    begun = time.monotonic()

    def is_past() -> bool:
        now = idle(user)
        assert now["now"] is not None
        assert now["used_at"] is not None
        assert now["now"] - now["used_at"] < LIMIT_SECONDS, "it counts as unused"
        return time.monotonic() - begun > seconds

    until(is_past, seconds=seconds + 30, every=2, what="the limit is past")
    assert portal.jobs(user=IDLER) == [job_id]
    assert user.server() is not None


def wait_for_its_end(user: Visitor, portal: Instance) -> None:
    until(
        lambda: user.server() is None,
        seconds=ENDS_WITHIN_SECONDS,
        what="the unused session has ended",
    )
    until(lambda: not portal.jobs(user=IDLER), seconds=20, what="its job is gone")


def test_a_forgotten_tab_does_not_keep_its_session(portal: Instance, user: Visitor) -> None:
    user.start_and_wait(gpus=1)
    kernel_id = user.open_kernel()
    token = {"Authorization": f"token {user.token()}"}
    base = f"{portal.url}/user/{IDLER}"
    with user.socket(f"/api/kernels/{kernel_id}/channels"):

        def polls() -> bool:
            # What JupyterLab asks for as long as a tab is there.
            for path in (
                "/api/kernels",
                "/api/sessions",
                "/api/terminals",
                "/api/contents/",
                "/portal/use",
            ):
                user.http.get(f"{base}{path}", headers=token)
            layout = {"data": {}, "metadata": {"id": "default"}}
            user.http.put(f"{base}/lab/api/workspaces/default", headers=token, json=layout)
            return user.server() is None

        until(polls, seconds=ENDS_WITHIN_SECONDS, every=1, what="the forgotten session has ended")
    until(lambda: not portal.jobs(user=IDLER), seconds=20, what="its job is gone")
    assert "not been used for 18 s" in user.note()


@pytest.mark.long
def test_a_kernel_that_computes_with_no_page_open_is_use(portal: Instance, user: Visitor) -> None:
    job_id = user.start_and_wait(gpus=0)
    kernel_id = user.open_kernel()
    with user.socket(f"/api/kernels/{kernel_id}/channels") as socket:
        # No processor works either: what counts is that the cell runs.
        code = "import time; time.sleep(600)"
        header = {"msg_id": "a", "msg_type": "execute_request", "username": "", "session": "b"}
        content = {"code": code, "silent": False}
        message = {"channel": "shell", "header": {**header, "version": "5.3"}}
        empty: dict[str, object] = {"parent_header": {}, "metadata": {}}
        socket.send(json.dumps({**message, **empty, "content": content}))
        until(
            lambda: (
                user.session("GET", f"/api/kernels/{kernel_id}").json()["execution_state"] == "busy"
            ),
            seconds=30,
            what="the cell runs",
        )
    lives_on(user, portal, job_id)

    # And when the cell is over, the session is unused as any other.
    user.session("POST", f"/api/kernels/{kernel_id}/interrupt").raise_for_status()
    wait_for_its_end(user, portal)


def test_a_command_that_computes_in_a_closed_terminal_is_use(
    portal: Instance, user: Visitor
) -> None:
    job_id = user.start_and_wait(gpus=0)
    name = user.session("POST", "/api/terminals").json()["name"]
    with user.socket(f"/terminals/websocket/{name}") as socket:
        # A part of a core is use; the other tests want the rest.
        loop = "while :; do for i in {1..14999}; do :; done; sleep 0.1; done"
        socket.send(json.dumps(["stdin", f"{loop}\r"]))
    lives_on(user, portal, job_id)


def test_a_program_that_writes_to_its_terminal_is_use(portal: Instance, user: Visitor) -> None:
    job_id = user.start_and_wait(gpus=0)
    name = user.session("POST", "/api/terminals").json()["name"]
    with user.socket(f"/terminals/websocket/{name}") as socket:
        socket.send(json.dumps(["stdin", "bash -c 'while sleep 1; do echo one more; done'\r"]))
    lives_on(user, portal, job_id, limits=1.5)


@pytest.mark.long
def test_a_gpu_that_works_is_use(portal: Instance, user: Visitor) -> None:
    with nvml.on_nodes(portal) as driver:
        driver.tell("0 1 32768 30 25000\n40 9000 32768 60 200000\n")
        job_id = user.start_and_wait(gpus=2)
        lives_on(user, portal, job_id, limits=1.5)
        driver.tell("0 1 32768 30 25000\n0 9000 32768 30 25000\n")
        wait_for_its_end(user, portal)


def test_a_shell_that_waits_for_a_line_is_no_use(portal: Instance, user: Visitor) -> None:
    user.start_and_wait(gpus=0)
    name = user.session("POST", "/api/terminals").json()["name"]
    with user.socket(f"/terminals/websocket/{name}"):
        wait_for_its_end(user, portal)
    assert "not been used" in user.note()


def test_who_says_to_be_there_keeps_the_session(portal: Instance, user: Visitor) -> None:
    job_id = user.start_and_wait(gpus=0)
    limit_is_known(user)
    begun = time.monotonic()

    def is_past() -> bool:
        user.session("POST", "/portal/idle").raise_for_status()
        return time.monotonic() - begun > 1.5 * LIMIT_SECONDS

    until(is_past, seconds=60, every=3, what="the limit is past")
    assert portal.jobs(user=IDLER) == [job_id]


@pytest.fixture(scope="module")
def other(portal: Instance) -> Iterator[Visitor]:
    """A user of no group with a limit of its own, with a session."""
    with session_of(portal, USERS[2]) as other:
        yield other


def test_others_have_the_limit_of_all(other: Visitor) -> None:
    until(lambda: idle(other)["limit_seconds"] == 7200, seconds=30, what="the limit is known")


def test_only_a_sessions_own_token_speaks_of_its_use(portal: Instance, user: Visitor) -> None:
    user.start_and_wait(gpus=0)
    body = {"idle_seconds": 0}
    path = "/gpu-session/activity"
    assert user.api("POST", path, json=body).status_code == 403
    url = f"{portal.url}/hub/api{path}"
    token = {"Authorization": f"token {user.token()}"}
    assert user.http.post(url, headers=token, json=body).status_code == 403


def test_nobody_announces_the_end_of_anothers_session(user: Visitor, other: Visitor) -> None:
    assert user.api("POST", f"/gpu-session/unused/{USERS[2]}/").status_code in (403, 404)
    # One's own is not over by being asked.
    assert other.api("POST", f"/gpu-session/unused/{USERS[2]}/").json() == {"end": False}
