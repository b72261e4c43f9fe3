"""Event files, as a training writes them."""

from pathlib import Path

from tests.instance import Instance

_WRITE = """
import sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter(sys.argv[1])
for step in range(100):
    value = Summary.Value(tag="loss", simple_value=1 / (1 + step))
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))
writer.close()
"""


def write(portal: Instance, user: str, folder: Path) -> None:
    """Write a curve into a folder as its user, with TensorBoard's own package."""
    python = portal.settings["session"]["tensorboard_python"]
    portal.slurm(python, "-I", "-c", _WRITE, str(folder), user=user)
