"""Whether torch.compile can work here: what it writes is compiled on the node, while it runs."""

import os
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path

COMPILERS = ("gcc", "clang", "cc")
CHOICES = ("auto", "yes", "no")


def is_wanted(asked: str, is_on_gpus: bool, say: Callable[[str], None]) -> bool:
    """Decide by what was asked for, ``auto`` with GPUs only; say so where it cannot work."""
    if asked == "no" or (asked == "auto" and not is_on_gpus):
        return False
    if lacking := missing():
        say(f"not compiled by torch.compile: {lacking}")
        return False
    return True


def missing(include: Path | None = None) -> str | None:
    """Say what this machine lacks; ``None``: nothing.

    Triton compiles a module of C for each kernel that it starts, and wants a compiler and Python's
    headers for that (triton/runtime/build.py). ``include``: where the headers are looked for.
    """
    named = os.environ.get("CC")
    compilers = (named,) if named else COMPILERS
    if not any(shutil.which(compiler) for compiler in compilers):
        return f"there is no C compiler ({', '.join(compilers)})"
    header = (include or Path(sysconfig.get_path("include"))) / "Python.h"
    return None if header.exists() else f"Python's headers are missing ({header})"
