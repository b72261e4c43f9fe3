"""A function of the user's, by its name."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class FunctionError(ValueError):
    """There is no such function; the message says what is missing, or what a name looks like."""


def find(name: str) -> Callable[..., Any]:
    """Import the function of "FILE.py:FUNCTION", or of "MODULE:FUNCTION".

    What stands beside the file can be imported by it. Raises `FunctionError`.
    """
    module, _, function = name.rpartition(":")
    if not module or not function:
        raise FunctionError(f"{name!r} is neither FILE.py:FUNCTION nor MODULE:FUNCTION")
    if module.endswith(".py"):
        file = Path(module).expanduser().resolve()
        if not file.is_file():
            raise FunctionError(f"{name!r}: there is no file {file}")
        sys.path.insert(0, str(file.parent))
        module = file.stem
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise FunctionError(f"{name!r}: {error}") from error
    return found
