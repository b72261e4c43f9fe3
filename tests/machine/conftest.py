"""The machines that these tests have to themselves."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

import bootstrap
import pytest

from tests.debian import machines, roots
from tests.debian.machines import Enclosure, Machine
from tests.instance import ROOT
from tests.machine.fresh import furnish

# What has been fetched from registries, so that a machine does not fetch it again.
_FETCHED = (bootstrap.CACHE / "uv", bootstrap.CACHE / "npm")
_IN_MEMORY = Path("/srv")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Boot a fresh Debian 12."""
    folder = tmp_path_factory.mktemp("machine")
    with ExitStack() as leaving:
        leaving.callback(shutil.rmtree, folder, ignore_errors=True)
        roots.copy(roots.minimal(), folder / "root")
        yield _booted(leaving.enter_context(_connected()), folder / "root")


@pytest.fixture(scope="module")
def equipped(suite: str) -> Iterator[Machine]:
    """Boot a machine that has the packages of its system's list, and what was fetched before.

    It keeps what it writes in memory.
    """
    base = _with_packages(suite)
    for folder in _FETCHED:
        folder.mkdir(parents=True, exist_ok=True)
    with _connected() as enclosure:
        root = _root_in_memory(enclosure, base)
        yield _booted(enclosure, root, *(f"--bind={folder}" for folder in _FETCHED))


@pytest.fixture(scope="module")
def cut_off() -> Iterator[Machine]:
    """Boot a Debian 12 that has the packages of its list, and reaches no other machine."""
    base = _with_packages("bookworm")
    roots.install_tools("systemd-container")
    with machines.enclosure() as enclosure:
        enclosure.run("/sbin/ip", "link", "set", "lo", "up")
        # The one that it would have in its own network: Slurm asks for names as if there was one.
        enclosure.run("/sbin/ip", "address", "add", "10.99.0.1/24", "dev", "lo")
        root = _root_in_memory(enclosure, base)
        furnish(enclosure.path(root))
        machine = Machine(enclosure, "portal-cut-off", root)
        machine.boot()
        yield machine


def _with_packages(suite: str) -> Path:
    """Return a root of a Debian with what a portal on one machine installs."""
    named = roots.system(roots.SYSTEMS[suite])["packages_of"].items()
    wanted = [names for role, names in named if role not in (*roots.HARDWARE, "mpi")]
    packages = {*bootstrap.SYSTEM_PACKAGES, *chain.from_iterable(wanted)}
    return roots.equipped(sorted(packages), suite)


def _root_in_memory(enclosure: Enclosure, base: Path) -> Path:
    """Return a root as the enclosure sees it, of which memory has what is written."""
    enclosure.run("/bin/mount", "-t", "tmpfs", "-o", "mode=755", "machine", _IN_MEMORY)
    root = _IN_MEMORY / "root"
    enclosure.lend(base, root, _IN_MEMORY / "written")
    return root


def _booted(enclosure: Enclosure, root: Path, *options: str) -> Machine:
    """Boot a machine that has a clone of this repository, from a root as the enclosure sees it."""
    furnish(enclosure.path(root))
    enclosure.run("/usr/bin/git", "clone", "-q", ROOT, root / "root/portal")
    machine = Machine(enclosure, "portal-fresh", root, options)
    machine.boot()
    return machine


@contextmanager
def _connected() -> Iterator[Enclosure]:
    """Hold an enclosure from which a machine reaches what this one does."""
    roots.install_tools("systemd-container", "slirp4netns")
    with ExitStack() as leaving:
        enclosure = leaving.enter_context(machines.enclosure())
        slirp = ["/usr/bin/slirp4netns", "--configure", "--disable-host-loopback"]
        network = subprocess.Popen(
            [*slirp, str(enclosure.holder), "tap0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        leaving.callback(network.wait, 30)
        leaving.callback(network.kill)
        yield enclosure
