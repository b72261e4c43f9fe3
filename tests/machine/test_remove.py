"""A machine after `deploy/remove`: what is left is what the page says.

On a machine of its own, as in `test_fresh_debian`.
"""

import re

import pytest

from tests.debian import building
from tests.debian.machines import Machine
from tests.machine.fresh import changed, make, visit

REMOVE = ("/usr/bin/env", "--chdir=/root/portal", "deploy/remove", "all_in_one")
OURS = ("data-scientist-portal*", "portal", "portal-*", "jupyterhub*", "image-cache")
# The clone, what the kernel has, and where packages have files of such names.
ELSEWHERE = ("/root", "/proc", "/sys", "/run/systemd", "/usr/share", "/usr/lib")
LEFT = ("/etc/munge/munge.key",)
"""Of what the page names: Debian's packages, and this."""
DATA = (
    "/home/user1/kept.txt",
    "/mnt/isilon/users/user1",
    "/var/lib/data-scientist-portal/hub/jupyterhub.sqlite",
    "/var/lib/data-scientist-portal/directory",
)
KEPT = (
    "/home/user1/.local/state/data-scientist-portal",
    "/mnt/isilon/groups/portal-admins",
    "/var/backups/data-scientist-portal",
    "/var/lib/data-scientist-portal",
)
"""What is called like something of the portal where data are kept."""
ACCOUNTS = ("jupyterhub", "portal-images", "user1", "admin1")
PROGRAMS = "dsportal|slurmctld|slurmd|slapd|nslcd|munged|proxy.mjs|nginx|supervisord"


def named_like_ours(machine: Machine) -> list[str]:
    """Return the files and folders that are called like something of the portal."""
    pruned = [word for place in ELSEWHERE for word in ("-path", place, "-o")][:-1]
    names = [word for name in OURS for word in ("-name", name, "-o")][:-1]
    found = machine.run(
        *("/usr/bin/find", "/", "-xdev", "(", *pruned, ")", "-prune", "-o"),
        *("(", *names, ")", "-prune", "-print"),
    )
    return sorted(found.split())


def there(machine: Machine, *paths: str) -> list[str]:
    """Return which of these are there."""
    script = 'for path; do [ ! -e "$path" ] || echo "$path"; done'
    return machine.run("/bin/sh", "-c", script, "sh", *paths).split()


def accounts(machine: Machine) -> list[str]:
    """Return which of the portal's accounts the machine knows."""
    script = 'for name; do id "$name" > /dev/null 2>&1 && echo "$name"; done; true'
    return machine.run("/bin/sh", "-c", script, "sh", *ACCOUNTS).split()


def masked(machine: Machine) -> list[str]:
    """Return the units that cannot start, as the deployment leaves those of packages."""
    links = ("-lname", "/dev/null", "-printf", "%f\n")
    return machine.run("/usr/bin/find", "/etc/systemd/system", "-maxdepth", "1", *links).split()


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_nothing_is_left_but_what_the_page_names(machine: Machine) -> None:
    masked_before, named_before = masked(machine), named_like_ours(machine)
    assert changed(make(machine, "up")) > 0
    assert visit(machine)["said"] == "42\n"
    machine.run("/usr/bin/touch", "/home/user1/kept.txt")

    # Nobody is there to be asked about data.
    with pytest.raises(RuntimeError, match="--keep-data or --delete-data"):
        machine.run(*REMOVE, seconds=120, **building.lent())
    assert visit(machine) == {"ready": True, "said": "42\n"}

    machine.run(*REMOVE, "--keep-data", seconds=600, **building.lent())
    assert there(machine, *DATA) == list(DATA)
    assert set(named_like_ours(machine)) - set(named_before) == {*KEPT}
    assert accounts(machine) == ["jupyterhub", "portal-images"]
    assert set(masked(machine)) == set(masked_before)
    asked = machine.run("/usr/bin/grep", "-E", "^(passwd|group):", "/etc/nsswitch.conf")
    assert "ldap" not in asked
    running = machine.run("/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; true")
    assert not re.search(PROGRAMS, running)

    # Once more, where there is no portal: the data go, and with them the last of it.
    machine.run(*REMOVE, "--delete-data", seconds=600, **building.lent())
    assert there(machine, *DATA) == []
    assert set(named_like_ours(machine)) == set(named_before)
    assert accounts(machine) == []
    assert there(machine, "/opt/data-scientist-portal", "/etc/slurm/slurm.conf", *LEFT) == [*LEFT]
