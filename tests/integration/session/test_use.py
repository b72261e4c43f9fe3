"""What a session tells of its use: real loads in it, and in another user's beside it.

All nodes of the test's cluster are on one machine, so whatever is read of the whole machine would
show in both. Only NVIDIA's library is a stand-in (tests/nvml).
"""

import os
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests import nvml
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.waits

Visit = Callable[[str], Visitor]
MB = 1 << 20

# Computes 6 s, holds 600 MB, writes 64 MB to the disk and reads them from there.
LOAD = """
import os, time
held = bytearray(600 << 20)
with open("load", "wb") as file:
    file.write(os.urandom(64 << 20))
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
with open("load", "rb") as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    while file.read(1 << 20):
        pass
os.remove("load")
end = time.process_time() + 6
while time.process_time() < end:
    pass
print("done")
"""


def use(user: Visitor, since: int = 0) -> dict[str, Any]:
    answer = user.session("GET", f"/portal/use?since={since}")
    answer.raise_for_status()
    return dict(answer.json())


def newest(user: Visitor) -> int:
    """Wait for a first sample; return the newest one's number."""
    told = until(
        lambda: (now := use(user))["samples"]["at"] and now, seconds=30, what="there is a sample"
    )
    return int(told["first"] + len(told["samples"]["at"]) - 1)


def sums(user: Visitor, since: int) -> dict[str, float]:
    """Return what was used after a sample: seconds of processors, bytes."""
    samples = use(user, since - 1)["samples"]
    spans = [after - at for at, after in zip(samples["at"], samples["at"][1:], strict=False)]
    columns = ("cores", "read_rate", "write_rate")
    told = {
        name: sum(rate * span for rate, span in zip(samples[name][1:], spans, strict=True))
        for name in columns
    }
    memory = [value - samples["memory_bytes"][0] for value in samples["memory_bytes"]]
    return {**told, "memory": max(memory)}


def test_a_load_shows_in_its_own_session_and_in_no_other(visit: Visit) -> None:
    busy, idle = visit(USERS[0]), visit(USERS[1])
    for user in (busy, idle):
        user.start_and_wait(gpus=0)
    kernels = [user.open_kernel() for user in (busy, idle)]
    idle.run_in(kernels[1], "print(1)")
    before = {user.name: newest(user) for user in (busy, idle)}
    assert "done" in busy.run_in(kernels[0], LOAD, seconds=200)
    ended = newest(busy)
    until(lambda: newest(busy) > ended, seconds=60, what="one more sample, of all that was done")

    # Rates times rounded spans: a little less than what was done.
    done = sums(busy, before[busy.name])
    assert 5.8 <= done["cores"] < 14
    assert 600 * MB <= done["memory"] < 900 * MB
    assert 62 * MB <= done["write_rate"] < 100 * MB
    assert 62 * MB <= done["read_rate"] < 200 * MB

    others = sums(idle, before[idle.name])
    assert others["cores"] < 4
    assert others["memory"] < 200 * MB
    assert others["write_rate"] < 20 * MB
    assert others["read_rate"] < 50 * MB


def test_what_is_held_is_what_slurm_gave(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    job = portal.job(user.start_and_wait(gpus=1))
    held = use(user)["held"]
    assert held["cores"] == int(job["NumCPUs"])
    # Slurm bounds it by the memory that the node really has.
    real_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MB
    given_mb = int(job["MinMemoryNode"].removesuffix("G")) * 1024
    assert held["memory_bytes"] == min(given_mb, real_mb) * MB
    # The nodes of the tests have no driver, and the session says so.
    newest(user)
    assert use(user)["gpus"] == {"state": "no_driver", "each": []}


def test_the_jobs_own_gpus_are_told(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    with nvml.on_nodes(portal) as driver:
        driver.tell("80 9000 32768 60 200000\n0 1 32768 30 25000\n99 1 32768 1 1\n")
        user.start_and_wait(gpus=2)
        newest(user)
        told = use(user)
        assert [gpu["name"] for gpu in told["gpus"]["each"]] == ["Stand-in V100"] * 2
        columns = told["samples"]["gpus"]
        assert [column["percent"][-1] for column in columns] == [80, 0]
        assert columns[0]["memory_bytes"][-1] == 9000 * MB

        driver.tell("hang")
        until(
            lambda: use(user)["gpus"]["state"] == "no_answer",
            seconds=40,
            what="the session has noticed that the driver hangs",
        )
        driver.tell("10 9000 32768 60 200000\n0 1 32768 30 25000\n")
        until(
            lambda: use(user)["samples"]["gpus"][0]["percent"][-1] == 10,
            seconds=40,
            what="the driver is heard again",
        )
        user.leave()


def test_only_its_own_user_reads_it(portal: Instance, visit: Visit) -> None:
    user, stranger = visit(USERS[0]), visit(USERS[1])
    user.start_and_wait(gpus=0)
    url = f"{portal.url}/user/{USERS[0]}/portal/use"
    for headers in ({}, {"Authorization": f"token {stranger.token()}"}):
        assert httpx.get(url, headers=headers).status_code in (302, 403)
    for since in ("-1", "x", "9" * 40):
        answer = user.session("GET", f"/portal/use?since={since}")
        assert answer.status_code == 400
        assert "the number of a sample" in answer.json()["message"]
