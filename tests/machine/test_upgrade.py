"""An instance of before there were two distributions takes the new layout, and its sessions go on.

On a machine of its own, as in `test_fresh_debian`: ``make up`` as it was, a session, ``make up`` as
it is. It takes the repository's history, so it is part of ``make test-all`` only.
"""

import subprocess

import pytest

from tests.debian.machines import Machine
from tests.instance import ROOT
from tests.machine.fresh import changed, make, visit

BEFORE = "fa6a669"
"""The last commit whose packages were named ``portal`` and ``spawner``."""

pytestmark = pytest.mark.long


@pytest.mark.timeout(2400)
def test_an_older_instance_takes_the_new_layout_and_keeps_its_session(machine: Machine) -> None:
    old = machine.files / "root" / "before"
    subprocess.run(["/usr/bin/git", "clone", "-q", str(ROOT), str(old)], check=True)
    subprocess.run(["/usr/bin/git", "-C", str(old), "checkout", "-q", BEFORE], check=True)

    assert changed(make(machine, "up", "before")) > 0
    assert visit(machine)["said"] == "42\n"
    before = machine.run("/usr/bin/squeue", "--noheader", "-o", "%i %T %M").split()
    assert before[1] == "RUNNING"
    assert changed(make(machine, "up")) > 0
    after = machine.run("/usr/bin/squeue", "--noheader", "-o", "%i %T %M").split()
    assert after[:2] == before[:2]
    # It answers, and the hub of today knows it.
    assert visit(machine) == {"ready": True, "said": "42\n"}
    assert changed(make(machine, "up")) == 0
    make(machine, "down")
