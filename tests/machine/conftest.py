"""The machines that these tests have to themselves."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import bootstrap
import pytest

from tests import machines, roots
from tests.machine.fresh import fresh_root
from tests.machines import Machine

# What has been fetched from registries, so that a machine does not fetch it again.
_FETCHED = (bootstrap.CACHE / "uv", bootstrap.CACHE / "npm")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Boot a fresh Debian 12."""
    with _booted(tmp_path_factory.mktemp("machine"), roots.minimal()) as booted:
        yield booted


@pytest.fixture(scope="module")
def debian_13(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Boot a Debian 13 that has every package of its list, and what was fetched before."""
    named = roots.system("debian-13")["packages_of"].values()
    packages = {*bootstrap.SYSTEM_PACKAGES, *(package for names in named for package in names)}
    base = roots.equipped(sorted(packages), "trixie")
    for folder in _FETCHED:
        folder.mkdir(parents=True, exist_ok=True)
    with _booted(
        tmp_path_factory.mktemp("debian-13"), base, [f"--bind={folder}" for folder in _FETCHED]
    ) as booted:
        yield booted


@contextmanager
def _booted(folder: Path, base: Path, options: Sequence[str] = ()) -> Iterator[Machine]:
    roots.install_tools("systemd-container", "slirp4netns")
    with ExitStack() as leaving:
        leaving.callback(shutil.rmtree, folder, ignore_errors=True)
        root = fresh_root(folder, base)
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
        booted = Machine(enclosure, "portal-fresh", root, options)
        booted.boot()
        yield booted
