"""A fresh Debian 12 with systemd, and the README's commands on it.

The machine is real but for its kernel (`tests.debian.machines`): systemd boots from a root that
debootstrap has made, with its own network (slirp4netns), so that it takes no port of this machine.
It installs all that the portal needs by itself; what is lent to it are the authorities that this
machine trusts, the folders of wheels that this machine's pip knows, and what this machine's apt was
told of its archive (a mirror may be older than its lists of packages are good for).

Not part of ``make test``, for its time. ``make test-all`` runs it.
"""

import re

import pytest

from tests.debian import building
from tests.debian.machines import Machine
from tests.machine.fresh import changed, make, visit

UNITS = "portal-*"
# Of the tests that need no instance, some that need programs.
WITHOUT_INSTANCE = (
    "tests/unit/containers/test_server.py",
    "tests/notebooks/data/test_mnist_stand_in.py",
)
# Of those that need one, some of each kind.
WITH_INSTANCE = (
    "tests/integration/hub/test_survival.py::test_a_killed_hub_keeps_every_session",
    "tests/integration/hub/test_login.py",
    "tests/integration/security/test_requests.py::test_no_answer_names_a_version",
    "tests/integration/authentication/test_guessing.py",
    # A file of an image cannot be mounted there, as the machine has no /dev/fuse.
    "tests/integration/images/test_own_image.py::test_the_nas_is_in_an_image_where_it_is_outside",
    "tests/integration/images/test_own_image.py::test_a_definition_that_fails_leaves_no_image",
    "tests/integration/administration/test_what_tests_start.py",
    "tests/browser/options/test_form.py",
    "tests/notebooks/test_templates.py::test_missing_data_is_said_in_words[pytorch]",
)
SEALED = ("front", "proxy", "munged", "slapd", "nslcd", "slurmctld")


def run_in_clone(machine: Machine, *argv: str) -> str:
    """Run a program of the clone, in it."""
    inside = ("/usr/bin/env", "--chdir=/root/portal", *argv)
    return machine.run(*inside, seconds=1800, **building.lent())


def exposure(machine: Machine, service: str) -> float:
    """Return what systemd thinks of a unit: 0 is sealed off, 10 is wide open."""
    unit = f"portal-{service}.service"
    told = machine.run("/usr/bin/systemd-analyze", "security", "--no-pager", unit)
    match = re.search(r"exposure level for \S+ ([\d.]+)", told)
    assert match, told
    return float(match[1])


@pytest.mark.timeout(900)
def test_the_templates_unit_tests_need_nothing_that_is_deployed(machine: Machine) -> None:
    """`make check` is for a machine that never saw `make up`; these run programs."""
    make(machine, "/usr/bin/python3")
    # What a machine is installed with, and debootstrap's root lacks.
    machine.run("/bin/sh", "-c", "echo 127.0.0.1 localhost >> /etc/hosts")
    dev = run_in_clone(machine, "deploy/venv", "dev").strip()
    said = run_in_clone(machine, f"{dev}/bin/pytest", "-q", "-n2", "tests/unit/templates")
    assert re.search(r"^\d+ passed in ", said, re.M), said[-2000:]


@pytest.mark.timeout(2400)
def test_two_commands_on_a_fresh_machine(machine: Machine) -> None:
    assert changed(make(machine, "up")) > 0
    active = machine.run("/bin/systemctl", "list-units", "--plain", "--no-legend", UNITS)
    for service in (
        "hub",
        "proxy",
        "front",
        "slapd",
        "nslcd",
        "munged",
        "slurmctld",
        "slurmd-node001",
    ):
        assert re.search(rf"^portal-{service}\.service\s+loaded\s+active", active, re.M), active
    assert visit(machine) == {"ready": True, "said": "42\n"}
    jobs = machine.run("/usr/bin/squeue", "--noheader", "-o", "%j %u %b")
    assert jobs.split() == ["portal-user1", "user1", "gres:gpu:2"]

    # Sealed off, as far as what each does allows; what starts sessions needs sudo.
    exposed = {service: exposure(machine, service) for service in (*SEALED, "hub")}
    assert {service: exposed[service] for service in SEALED if exposed[service] > 2.0} == {}
    assert exposed["hub"] < 7.0

    # Once more: nothing changes, and the session goes on.
    job_id = machine.run("/usr/bin/squeue", "--noheader", "-o", "%i")
    assert changed(make(machine, "up")) == 0
    assert machine.run("/usr/bin/squeue", "--noheader", "-o", "%i") == job_id
    assert visit(machine) == {"ready": True, "said": "42\n"}

    # And down: nothing that it started is left.
    make(machine, "down")
    left = machine.run(
        "/bin/systemctl", "list-units", "--plain", "--no-legend", "--state=active", UNITS
    )
    assert left.strip() == ""
    running = machine.run("/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; true")
    assert "systemd" in running
    assert not re.search("dsportal.session|slurmctld|slapd|proxy.mjs|nginx", running)


@pytest.mark.timeout(900)
def test_a_machine_that_never_ran_a_test_can_collect_them(machine: Machine) -> None:
    """Nobody is looked up, and nothing is asked, before a test runs."""
    dev = run_in_clone(machine, "deploy/venv", "dev").strip()
    said = run_in_clone(machine, f"{dev}/bin/pytest", "--collect-only", "-q")
    assert re.search(r"^\d+ tests collected", said, re.M), said[-2000:]


@pytest.mark.timeout(900)
def test_tests_that_need_no_instance_pass_there(machine: Machine) -> None:
    dev = run_in_clone(machine, "deploy/venv", "dev").strip()
    said = run_in_clone(machine, f"{dev}/bin/pytest", "-q", *WITHOUT_INSTANCE)
    assert re.search(r"^\d+ passed in ", said, re.M), said[-2000:]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_one_test_of_each_kind_passes_there(machine: Machine) -> None:
    """The test instance is brought up, too, by nothing but what the project installs.

    That it installs what tests start is asked wherever they run: test_what_tests_start.
    """
    # Horovod alone, which these tests do not use, is compiled for minutes.
    inventory = "/root/portal/deploy/ansible/inventories/test/group_vars/all/main.yml"
    without = "s/^environments_horovod: true$/environments_horovod: false/"
    machine.run("/usr/bin/sed", "-i", without, inventory)
    dev = run_in_clone(machine, "deploy/venv", "dev").strip()
    said = run_in_clone(machine, f"{dev}/bin/pytest", "-q", *WITH_INSTANCE)
    assert re.search(r"^\d+ passed in ", said, re.M), said[-2000:]
