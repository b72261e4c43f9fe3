"""The machine that these tests have to themselves."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests import machines, roots
from tests.machine.fresh import fresh_root
from tests.machines import Machine


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    roots.install_tools("systemd-container", "slirp4netns")
    folder = tmp_path_factory.mktemp("machine")
    with ExitStack() as leaving:
        leaving.callback(shutil.rmtree, folder, ignore_errors=True)
        root = fresh_root(folder)
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
        booted = Machine(enclosure, "portal-fresh", root)
        booted.boot()
        yield booted
