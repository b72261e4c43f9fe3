"""A stand-in for NVIDIA's library on the node, as there need be no GPU where tests run.

Everything above it is real: the binding (nvidia-ml-py) and what asks it. A process finds it as it
finds the real one, in a folder of the linker's (``LD_LIBRARY_PATH``).
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.instance import Instance

_SOURCE = Path(__file__).with_name("stand_in.c")
_NAME = "libnvidia-ml.so.1"


@dataclass(frozen=True)
class StandIn:
    """The library, in a folder with its figures."""

    folder: Path

    def tell(self, text: str) -> None:
        """Let it give other figures: a line for each GPU, see stand_in.c."""
        new = self.folder / "figures.new"
        new.write_text(text)
        new.chmod(0o644)
        new.rename(self.folder / "figures")


def build(folder: Path) -> StandIn:
    """Compile it into a folder."""
    library = folder / _NAME
    argv = ["gcc", "-shared", "-fPIC", "-O1", f'-DFIGURES="{folder}/figures"']
    argv += [f"-Wl,-soname,{_NAME}", "-o", str(library), str(_SOURCE)]
    subprocess.run(argv, check=True, timeout=60)
    library.chmod(0o755)
    return StandIn(folder)


@contextmanager
def on_nodes(portal: Instance) -> Iterator[StandIn]:
    """Let the jobs that start now find it on their nodes, as if a driver was installed there."""
    folder = Path(tempfile.mkdtemp(prefix="nvml-"))
    folder.chmod(0o755)
    stand_in = build(folder)
    prolog = folder / "prolog"
    prolog.write_text(f"#!/bin/sh\necho export LD_LIBRARY_PATH={folder}\n")
    prolog.chmod(0o755)
    conf = Path(portal.settings["slurm"]["config_file"])
    before = conf.read_text(encoding="utf-8")
    try:
        conf.write_text(f"{before}TaskProlog={prolog}\n", encoding="utf-8")
        portal.slurm("scontrol", "reconfigure")
        yield stand_in
    finally:
        conf.write_text(before, encoding="utf-8")
        portal.slurm("scontrol", "reconfigure")
        shutil.rmtree(folder)
