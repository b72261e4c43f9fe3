"""A backup waits for the state that slurmctld is about to write."""

import os
import threading
import time
from pathlib import Path

from portal.backup import saving


def test_a_state_that_is_written_meanwhile_is_waited_for(tmp_path: Path) -> None:
    state = tmp_path / "job_state"
    state.touch()
    os.utime(state, (0, 0))
    writer = threading.Timer(0.5, state.touch)
    writer.start()
    try:
        assert saving.wait(tmp_path, seconds=30)
        assert state.stat().st_mtime > time.time() - 30
    finally:
        writer.join()


def test_where_nothing_changes_it_is_not_waited_for_ever(tmp_path: Path) -> None:
    assert not saving.wait(tmp_path, seconds=0.3)
    (tmp_path / "job_state").touch()
    assert not saving.wait(tmp_path, seconds=0.3)
