"""Interpreters of the kernels whose imports are done, for tests that start many short programs.

To import PyTorch, Transformers and PEFT takes 4 s of a processor, and most programs that tests
start take less than that for all else. Each program is still a process of its own, with its own
variables, folder and signals: a fork of a process that has imported, and done nothing else. It does
not show that the imports themselves succeed, nor with another seed of hashes than its neighbours'
that nothing depends on it: notebooks and jobs do, which start as users start them.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.notebooks.running import SPARING
from tests.waiting import until

HERE = Path(__file__).parent
MODULES = {
    "pytorch": ("torch", "transformers", "peft"),
    "tensorflow": ("tensorflow", "keras"),
    "jax": ("jax", "keras", "orbax.checkpoint"),
}
# What is read while these are imported, and what the templates' programs set it to.
VARIABLES = {
    "pytorch": {"HF_HUB_OFFLINE": "1"},
    "tensorflow": {"TF_CPP_MIN_LOG_LEVEL": "2"},
    "jax": {"KERAS_BACKEND": "jax"},
}
# pandas loads Arrow where it is there, whose allocator (jemalloc) would start one.
NO_BACKGROUND_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


@contextmanager
def preloaded(python: Path, modules: Sequence[str], **variables: str) -> Iterator[Path]:
    """Import modules with an interpreter; give what then runs programs as the interpreter does."""
    with TemporaryDirectory(dir="/tmp") as folder:
        address, program = Path(folder) / "socket", Path(folder) / "python"
        program.symlink_to(HERE / "preloaded_program.py")
        argv = [str(python), "-B", str(HERE / "preloaded_server.py"), str(address), *modules]
        environment = {**os.environ, **SPARING, **NO_BACKGROUND_THREAD, **variables}
        with subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment) as server:
            until(
                lambda: address.exists() or server.poll() is not None,
                seconds=120,
                what=f"{', '.join(modules)} are imported",
            )
            assert server.poll() is None, f"{', '.join(modules)} cannot be imported"
            yield program
