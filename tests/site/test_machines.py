"""What hosts run in is gone with the test that made it, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.debian import machines
from tests.instance import ROOT
from tests.waiting import until

HOLD = """
import time
from tests.debian import machines
from tests.waiting import until

with machines.enclosure() as enclosure:
    enclosure.run("/bin/mount", "-t", "tmpfs", "none", "/srv")
    program = enclosure.start("/bin/sleep", "infinity")
    (inside,) = until(lambda: machines.children(program.pid), seconds=10, what="it runs")
    print(enclosure.holder, inside, flush=True)
    time.sleep(600)
"""


def test_nothing_is_left_of_hosts_whose_test_was_killed() -> None:
    test = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert test.stdout
        running = [Path("/proc", pid) for pid in test.stdout.readline().split()]
        assert [process.exists() for process in running] == [True, True]
    finally:
        test.kill()
        test.communicate()
    until(lambda: not any(map(Path.exists, running)), seconds=10, what="all processes are gone")
    assert not Path("/srv").is_mount()


def test_an_enclosure_ends_with_a_program_that_was_stopped() -> None:
    with machines.enclosure() as enclosure:
        program = enclosure.start("/bin/sleep", "infinity")
        (inside,) = until(lambda: machines.children(program.pid), seconds=10, what="it runs")
        os.kill(inside, signal.SIGSTOP)
        # nsenter stops with it.
        state = Path(f"/proc/{program.pid}/stat")
        until(lambda: ") T " in state.read_text(), seconds=10, what="both have stopped")
    assert not Path(f"/proc/{enclosure.holder}").exists()
