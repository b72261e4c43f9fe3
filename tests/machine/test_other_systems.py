"""Systems other than Debian 12: the README's command, and a session on each.

On a machine of its own, as in `test_fresh_debian`, but with its packages installed before.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.debian.machines import Machine
from tests.instance import Instance
from tests.machine.fresh import changed, make
from tests.visitor import Visitor
from tests.waiting import until

USER = "user1"
# The smallest, and one that has no packages for these systems' Python.
ASKED = "environments_kernels: [kernel-jax, kernel-mxnet]\n"
KERNELS = {"python3", "jax", "ir"}
GPUS_THAT_OPEN = """
import glob
for device in sorted(glob.glob("/var/lib/data-scientist-portal/devices/gpu*")):
    try:
        open(device, "rb").close()
        print(device[-1])
    except PermissionError:
        pass
"""
JOB = """
import subprocess
asked = ["sbatch", "--parsable", "--output=/dev/null", "--gres=gpu:1", "--wrap=exit 3"]
print(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
"""

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class System:
    """What comes with a release of a system."""

    suite: str
    slurm: str
    python: str
    r: str


SYSTEMS = (
    System("trixie", slurm="24.11", python="3.13", r="4.5"),
    System("noble", slurm="23.11", python="3.12", r="4.3"),
)


@pytest.fixture(scope="module", params=SYSTEMS, ids=lambda system: system.suite)
def system(request: pytest.FixtureRequest) -> System:
    """The system that a machine has."""
    assert isinstance(request.param, System)
    return request.param


@pytest.fixture(scope="module")
def suite(system: System) -> str:
    """Its name in an archive of packages."""
    return system.suite


@pytest.fixture(scope="module")
def deployed(equipped: Machine) -> str:
    """Deploy the portal; return what that printed."""
    inventory = equipped.files / "root/portal/deploy/ansible/inventories/all_in_one"
    (inventory / "group_vars/all/kernels.yml").write_text(ASKED)
    return make(equipped, "up")


@pytest.fixture
def user(equipped: Machine, deployed: str) -> Iterator[Visitor]:
    """Be a user in the machine's network, logged in."""
    settings = equipped.files / "etc/data-scientist-portal/portal.toml"
    with equipped.network():
        visitor = Visitor(Instance(tomllib.loads(settings.read_text())), USER)
        visitor.log_in().raise_for_status()
        yield visitor
        visitor.leave()
        visitor.close()


def job(machine: Machine, job_id: str) -> dict[str, str]:
    """Return what Slurm tells of a job."""
    text = machine.run("/usr/bin/scontrol", "show", "job", "--oneliner", job_id)
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


@pytest.mark.timeout(1800)
def test_it_is_deployed_as_on_debian_12(equipped: Machine, deployed: str, system: System) -> None:
    assert changed(deployed) > 0
    assert "kernel-mxnet: not made" in deployed
    assert equipped.run("/usr/bin/sinfo", "--version").startswith(f"slurm-wlm {system.slurm}.")
    # No backup has been made yet, of which it warns.
    said = equipped.run("/usr/local/sbin/portal", "doctor", "--json")
    bad = [each["check"] for each in json.loads(said) if each["state"] in ("warning", "failed")]
    assert bad == ["backup of hub and Slurm"], said


@pytest.mark.timeout(300)
def test_a_session_has_its_kernels_gpus_and_time(
    equipped: Machine, user: Visitor, system: System
) -> None:
    assert user.start(gpus=2, hours=0.5).status_code in (201, 202)
    user.wait_until_ready()
    job_id = str(user.session("GET", "/portal/clock").json()["job_id"])
    session = job(equipped, job_id)
    assert (session["TresPerNode"], session["TimeLimit"]) == ("gres/gpu:2", "00:30:00")
    assert set(user.session("GET", "/api/kernelspecs").json()["kernelspecs"]) == KERNELS
    assert user.run("import sys; print(sys.version)").startswith(f"{system.python}.")
    assert user.run(GPUS_THAT_OPEN).split() == ["0", "1"]
    assert "6" in user.run("import jax; print(jax.numpy.arange(4).sum())", kernel="jax")
    assert f"{system.r}." in user.run("cat(R.version.string)", kernel="ir")

    answer = user.session("POST", "/portal/clock/extend", json={"minutes": 60})
    assert answer.status_code == 200, answer.text
    assert job(equipped, job_id)["TimeLimit"] == "01:30:00"
    user.stop()
    until(lambda: job(equipped, job_id)["JobState"] == "CANCELLED", seconds=30, what="it ended")


@pytest.mark.timeout(300)
def test_a_users_jobs_are_shown_with_gpus_and_exit_code(user: Visitor) -> None:
    assert user.start(gpus=0).status_code in (201, 202)
    user.wait_until_ready()
    job_id = user.run(JOB).strip()

    def ended() -> list[dict[str, object]]:
        jobs = user.session("GET", "/portal/jobs").json()["jobs"]
        return [each for each in jobs if each["id"] == job_id and each["is_over"]]

    (shown,) = until(ended, seconds=60, what="the job's end is shown")
    assert (shown["state"], shown["exit_code"], shown["gpus"]) == ("FAILED", 3, 1), shown


@pytest.mark.timeout(300)
def test_a_second_run_changes_nothing(equipped: Machine, deployed: str) -> None:
    assert changed(make(equipped, "up")) == 0
    make(equipped, "down")
    running = equipped.run("/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; true")
    assert not re.search("dsportal.session|slurmctld|slapd|proxy.mjs|nginx", running)
