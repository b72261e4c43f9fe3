"""An instance of before there were two distributions takes the new layout, and its sessions go on.

On a machine of its own, as in `test_fresh_debian`: ``make up`` as it was, a session, ``make up`` as
it is. It takes the repository's history, so it is part of ``make test-all`` only.
"""

import re
import subprocess

import pytest

from tests.debian.machines import Machine
from tests.instance import ROOT
from tests.machine.fresh import changed, make, visit
from tests.pages import HOW_TOS
from tests.waiting import until

BEFORE = "fa6a669"
"""The last commit whose packages were named ``portal`` and ``spawner``."""

SETTINGS = "deploy/ansible/inventories/all_in_one/group_vars/all/zz_site.yml"
FORMER = "environments_cuda_kernels: []\n"
USAGE = "/var/lib/data-scientist-portal/hub/usage.sqlite"
VERSION = f"import sqlite3; print(*sqlite3.connect({USAGE!r}).execute('PRAGMA user_version'))"

pytestmark = pytest.mark.long


@pytest.fixture
def before(machine: Machine) -> str:
    """Deploy what was before, and start a session; return what Slurm says of its job."""
    old = machine.files / "root" / "before"
    subprocess.run(["/usr/bin/git", "clone", "-q", str(ROOT), str(old)], check=True)
    subprocess.run(["/usr/bin/git", "-C", str(old), "checkout", "-q", BEFORE], check=True)
    assert changed(make(machine, "up", "before")) > 0
    assert visit(machine)["said"] == "42\n"
    return session(machine)


def session(machine: Machine) -> str:
    """Return which job runs; fails unless there is exactly one, and it runs."""
    number, state = machine.run("/usr/bin/squeue", "--noheader", "-o", "%i %T").split()
    assert state == "RUNNING"
    return number


@pytest.mark.timeout(3600)
def test_an_older_instance_takes_the_new_layout_and_keeps_its_session(
    machine: Machine, before: str
) -> None:
    settings = machine.files / "root/portal" / SETTINGS
    settings.write_text(FORMER)
    with pytest.raises(RuntimeError, match="set environments_cuda_builds instead"):
        make(machine, "up")
    settings.unlink()
    assert session(machine) == before
    assert changed(make(machine, "up")) > 0
    # It answers, and the hub of today knows it.
    assert visit(machine) == {"ready": True, "said": "42\n"}
    assert session(machine) == before
    version = ("/usr/bin/python3", "-c", VERSION)
    until(lambda: machine.run(*version) == "(1,)\n", seconds=90, what="usage.sqlite is migrated")
    assert changed(make(machine, "up")) == 0

    # Back again, as the page says.
    stop = re.search(r"systemctl disable --now portal-front", (HOW_TOS / "upgrade.md").read_text())
    assert stop
    machine.run("/bin/sh", "-c", stop.group())
    assert changed(make(machine, "up", "before")) > 0
    assert visit(machine) == {"ready": True, "said": "42\n"}
    assert session(machine) == before
    make(machine, "down", "before")
