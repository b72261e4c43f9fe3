"""The three hosts when something fails: a directory, a host's network, the NAS, the head."""

import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.debian.hosts import Hosts
from tests.site.conftest import ASKED_AGAIN_SECONDS, Site
from tests.visitor import Visitor
from tests.waiting import until

# Less than from one question of Slurm's to the next: at most one is lost.
CUT_SECONDS = 120
RULES = ("/usr/sbin/nft", "--stateless", "list", "ruleset")
SERVER = "import os; print(os.getppid())"


@dataclass(frozen=True)
class CutOff:
    """A session whose host loses its network for a time; the tests that follow run meanwhile."""

    kernel: str
    """One of the session's, that remembers something."""
    plugged_in: threading.Timer
    """Gives the host its network back, however long those tests take."""


@pytest.fixture(scope="module")
def cut_off(hosts: Hosts, user: Visitor, neighbour: Visitor) -> Iterator[CutOff]:
    # Its host may just have got its network back; until the head finds it, the proxy says 503.
    until(lambda: answers(neighbour), seconds=60, what="the session is reached")
    kernel = neighbour.open_kernel()
    neighbour.run_in(kernel, "kept = 6 * 7")
    hosts.plug("compute2", "down")
    plugged_in = threading.Timer(CUT_SECONDS, hosts.plug, ("compute2", "up"))
    plugged_in.start()
    assert not answers(neighbour)
    yield CutOff(kernel, plugged_in)
    plugged_in.join()


@pytest.fixture
def newcomer(portal: Site) -> Visitor:
    """Somebody who has not logged in yet."""
    return Visitor(portal, "user3")


def test_people_log_in_while_the_first_directory_is_down(
    portal: Site, hosts: Hosts, cut_off: CutOff, newcomer: Visitor
) -> None:
    hosts.tell(hosts.directories[0], signal.SIGKILL)
    answer = newcomer.log_in()
    assert answer.url.path == "/hub/home", answer.text
    assert hosts.compute1.run("/usr/bin/id", "-nu", "10003") == "user3\n"
    newcomer.start_and_wait(gpus=1)
    assert portal.node_of(newcomer) == "compute1"
    newcomer.leave()
    newcomer.close()


def test_a_session_starts_beside_a_mount_that_does_not_answer_and_names_it(
    hosts: Hosts, cut_off: CutOff, newcomer: Visitor
) -> None:
    hosts.tell(hosts.nas["isilon1"], signal.SIGSTOP)
    try:
        newcomer.log_in()
        newcomer.start_and_wait(gpus=1)
        silent = [("/mnt/isilon1", "hangs")]
        until(lambda: troubles(newcomer) == silent, seconds=60, what="the session names the mount")
        assert newcomer.run("import os; print('user1' in os.listdir('/mnt/isilon2'))") == "True\n"
    finally:
        hosts.tell(hosts.nas["isilon1"], signal.SIGCONT)
    until(lambda: not troubles(newcomer), seconds=60, what="the mount is back by itself")
    newcomer.leave()
    newcomer.close()


def test_the_portal_answers_while_the_nas_does_not(
    hosts: Hosts, user: Visitor, cut_off: CutOff
) -> None:
    kernel = user.open_kernel()
    for mount in hosts.nas.values():
        hosts.tell(mount, signal.SIGSTOP)
    try:
        assert user.run_in(kernel, "print(6 * 7)") == "42\n"
        assert user.http.get("/hub/home").status_code == 200
        assert user.session("GET", "/api/contents/work").status_code in (200, 404)
    finally:
        for mount in hosts.nas.values():
            hosts.tell(mount, signal.SIGCONT)
    back = "import pathlib; print(pathlib.Path('/mnt/isilon/user1/x').write_text('back'))"
    assert user.run_in(kernel, back) == "4\n"


# As long as all that it waits for may take, one after the other.
@pytest.mark.timeout(CUT_SECONDS + ASKED_AGAIN_SECONDS + 120)
def test_a_host_that_was_cut_off_for_two_minutes_comes_back_with_its_session(
    portal: Site, hosts: Hosts, neighbour: Visitor, cut_off: CutOff
) -> None:
    jobs = portal.jobs(user="user2")
    cut_off.plugged_in.join()
    assert neighbour.http.get("/hub/home").status_code == 200
    assert neighbour.server(), "the session was given up"

    try:
        until(
            lambda: portal.states()["compute2"] == "mixed",
            seconds=ASKED_AGAIN_SECONDS,
            what="compute2 is back",
        )
    except AssertionError as error:
        error.add_note(portal.slurm("scontrol", "show", "node", "compute2"))
        error.add_note(portal.slurm("squeue", "--all"))
        raise
    until(lambda: answers(neighbour), seconds=60, what="the session answers")
    assert portal.jobs(user="user2") == jobs
    assert neighbour.run_in(cut_off.kernel, "print(kept)") == "42\n"


def test_sessions_go_on_while_the_head_restarts(portal: Site, hosts: Hosts, user: Visitor) -> None:
    kernel = user.open_kernel()
    user.run_in(kernel, "kept = 6 * 7")
    before = user.run(SERVER)
    jobs = portal.jobs(user="user1")
    rules = hosts.head.run(*RULES)
    hosts.head.restart()
    until(lambda: answers(user), seconds=120, what="the portal is back")
    user.wait_until_ready()
    assert portal.jobs(user="user1") == jobs
    assert user.run(SERVER) == before
    assert user.run_in(kernel, "print(kept)") == "42\n"
    assert "policy drop" in rules
    assert hosts.head.run(*RULES) == rules


def troubles(visitor: Visitor) -> list[tuple[str, str]]:
    """Return the mounts that a session has trouble with, and which."""
    told = visitor.session("GET", "/portal/notices").json()["mounts"]
    return [(trouble["point"], trouble["state"]) for trouble in told]


def answers(visitor: Visitor) -> bool:
    """Say whether the session is reached through the portal again."""
    try:
        return visitor.session("GET", "/api/status").status_code == 200
    except httpx.HTTPError:
        return False
