"""A node on which jobs would fail is drained with the reason, and resumes when all is well."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import faults
from tests.instance import FOLDER_NAME, NODES, Instance
from tests.waiting import until

PROGRAM = Path("/usr/local/libexec", FOLDER_NAME, "health")
SETTINGS = PROGRAM.with_suffix(".json")
MORE_THAN_THERE_IS = 2**40  # MiB


@pytest.fixture
def full(portal: Instance) -> Iterator[None]:
    """A host that has less room than it should, by its settings: to fill its disk hurts others."""
    written = SETTINGS.read_text()
    settings = json.loads(written)
    assert set(settings["nodes"]) == set(NODES)
    SETTINGS.write_text(json.dumps(settings | {"free_mb": MORE_THAN_THERE_IS}))
    yield
    SETTINGS.write_text(written)
    look()


def look() -> None:
    """Run the program as slurmd does."""
    done = subprocess.run([PROGRAM], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")


def nodes(portal: Instance) -> dict[str, tuple[str, str]]:
    """Return each node's state and reason."""
    said = portal.slurm("sinfo", "--Node", "--noheader", "--partition=sxm2", "-o", "%N|%T|%E")
    rows = (line.split("|", 2) for line in said.splitlines())
    return {name: (state, reason.partition(" [")[0]) for name, state, reason in rows}


def test_slurmd_looks_when_it_starts_and_a_full_host_is_drained_until_there_is_room(
    portal: Instance, full: None
) -> None:
    # Another's reason stays, and so does the drain.
    portal.slurm("scontrol", "update", f"NodeName={NODES[2]}", "State=DRAIN", "Reason=new fan")
    try:
        faults.service("restart", f"slurmd-{NODES[0]}")

        def are_drained() -> bool:
            return all("drain" in state for state, _ in nodes(portal).values())

        until(are_drained, seconds=60, what="the nodes are drained")
        found = nodes(portal)
        assert found[NODES[2]][1] == "new fan"
        for name in NODES[:2]:
            assert re.match(r"health: full: / has \d+ MiB left; /tmp has ", found[name][1])
        settings = json.loads(SETTINGS.read_text())
        SETTINGS.write_text(json.dumps(settings | {"free_mb": 1}))
        look()
        assert {name: "drain" in state for name, (state, _) in nodes(portal).items()} == {
            NODES[0]: False,
            NODES[1]: False,
            NODES[2]: True,
        }
        assert nodes(portal)[NODES[2]][1] == "new fan"
    finally:
        portal.slurm("scontrol", "update", f"NodeName={NODES[2]}", "State=RESUME")


@pytest.fixture
def told_of(portal: Instance) -> Iterator[int]:
    """An Xid error that this instance's nodes look for, and no other's of this machine do."""
    number = 9000 + os.getpid() % 1000
    written = SETTINGS.read_text()
    look()
    SETTINGS.write_text(json.dumps(json.loads(written) | {"xids": [number]}))
    yield number
    SETTINGS.write_text(written)
    look()
    portal.slurm("scontrol", "update", f"NodeName={','.join(NODES)}", "State=RESUME")


def test_an_xid_in_the_kernels_log_drains_the_host_until_an_administrator_resumes_it(
    portal: Instance, told_of: int
) -> None:
    # In the words of NVIDIA's driver, into the log that it writes to.
    words = f"NVRM: Xid (PCI:0000:41:00): {told_of}, pid=1234, name=python, GPU has fallen off\n"
    Path("/dev/kmsg").write_text(words)
    look()
    for state, reason in nodes(portal).values():
        assert "drain" in state
        assert reason == f"health: Xid {told_of} of GPU 0000:41:00"
    # It does not come back by itself, unlike one that has room again.
    look()
    assert all("drain" in state for state, _ in nodes(portal).values())
