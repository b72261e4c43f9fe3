"""What counts as growth, in a day of many users."""

import os
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import pytest

from benchmarks.portal.soak import growth as growth_module
from benchmarks.portal.soak.growth import (
    HOUR_LIMITS,
    MOST,
    PROCESSES,
    SERVICES,
    Growth,
    open_files,
)
from tests.instance import Instance

HOUR = 3600


def growth_of(name: str, per_hour: float, *, seconds: int = HOUR, start: float = 1) -> list[str]:
    """Return what is said of a figure that grows by so much, while all else stays as it is."""
    growth = Growth(cast("Instance", None))
    for process in PROCESSES:
        growth.samples[f"{process} threads"] = {1: [(float(at), 4.0) for at in range(0, HOUR, 60)]}
    line = [(float(at), start + per_hour * at / HOUR) for at in range(0, seconds + 1, 60)]
    growth.samples[name] = {1: line}
    return list(growth.broken())


def test_the_services_are_modules_of_ours() -> None:
    for module in SERVICES:
        assert find_spec(module), module


@pytest.mark.parametrize(
    "name", ["hub memory_mb", "culler threads", "cluster descriptors", "database_mb", "logs_mb"]
)
def test_each_figure_may_grow_by_its_limit_and_not_by_more(name: str) -> None:
    limit = HOUR_LIMITS[name.rpartition(" ")[2]]
    assert growth_of(name, 0.9 * limit) == []
    (found,) = growth_of(name, 1.5 * limit)
    assert found.startswith(f"{name} grows by {1.5 * limit:.1f} an hour")


def test_a_slope_is_not_judged_within_the_first_hour() -> None:
    assert growth_of("hub memory_mb", 30, seconds=HOUR - 60) == []


def test_warming_up_is_not_judged() -> None:
    growth = Growth(cast("Instance", None))
    for process in PROCESSES:
        growth.samples[f"{process} threads"] = {1: [(0.0, 4.0)]}
    growth.samples["hub memory_mb"] = {
        1: [(float(at), min(at, HOUR / 2) / 60) for at in range(0, HOUR + 60, 60)]
    }
    assert list(growth.broken()) == []
    told = growth.report()["hub memory_mb"]
    assert told["per_hour"] > 20
    assert told["warmed_up"]["per_hour"] == 0
    # By tenths: it rose in the first five.
    assert len(told["course"]) == 10
    assert told["course"][0] < told["course"][2] < told["course"][5] == told["course"][9] == 30


def test_lives_of_less_than_an_hour_are_not_judged_together() -> None:
    growth = Growth(cast("Instance", None))
    for process in PROCESSES:
        growth.samples[f"{process} threads"] = {1: [(0.0, 4.0)]}
    lives: dict[object, list[tuple[float, float]]] = {
        life: [(float(life * HOUR + at), at / 60) for at in range(0, 3000, 60)] for life in (0, 1)
    }
    growth.samples["hub memory_mb"] = lives
    assert list(growth.broken()) == []
    growth.samples["hub memory_mb"][2] = [
        (float(2 * HOUR + at), at / 60) for at in range(0, HOUR + 60, 60)
    ]
    (found,) = growth.broken()
    assert found == "hub memory_mb grows by 60.0 an hour, more than 20"


@pytest.mark.parametrize("name", ["hub memory_mb", "reconciler threads", "database_mb", "logs_mb"])
def test_each_figure_has_a_maximum(name: str) -> None:
    most = MOST[name.rpartition(" ")[2]]
    assert growth_of(name, 0, start=most) == []
    assert growth_of(name, 0, start=most + 1) == [
        f"{name} was {most + 1:.1f}, more than {most:.0f}"
    ]


def test_a_process_that_was_never_seen_is_named() -> None:
    growth = Growth(cast("Instance", None))
    assert list(growth.broken()) == [f"{name} was never seen" for name in PROCESSES]


def test_what_a_process_has_open_is_told_by_the_end_that_stays() -> None:
    before = open_files(os.getpid())
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0],
        open(os.devnull),
    ):
        port = server.getsockname()[1]
        found = open_files(os.getpid())
    assert found[f"{port} listens"] == 1
    assert found["others"] == before["others"] + 1
    assert sum(found.values()) == sum(before.values()) + 4


def test_a_process_that_was_killed_just_now_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal = Instance({"hub": {"state_dir": str(tmp_path)}})
    with subprocess.Popen(["/bin/true"]) as process:
        # It has ended, and nobody has asked how.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        monkeypatch.setattr(growth_module, "_processes", lambda: [("culler", process.pid)])
        growth = Growth(portal)
        growth.sample(0.0)
    assert "culler memory_mb" not in growth.samples
