"""Whether torch.compile can work here: what it writes is compiled on the node, while it runs."""

import os
import shutil
import sysconfig
from pathlib import Path

COMPILERS = ("gcc", "clang", "cc")


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
