"""Registration of our handlers with JupyterHub: instead of one of its own, or beside them.

JupyterHub reads its two lists, of pages and of its API, when it starts. Whatever is done here can
be done again without a second entry.
"""

from typing import Any


def replace(handlers: list[Any], theirs: type, ours: type, *given: dict[str, Any]) -> None:
    """Let ours answer at each address of theirs; with what that was given, or ``given``."""
    handlers[:] = [
        (one[0], ours, *(given or one[2:])) if one[1] in (theirs, ours) else one for one in handlers
    ]


def add(handlers: list[Any], path: str, ours: type, *given: dict[str, Any]) -> None:
    """Let ours answer at this address, and at no other."""
    remove(handlers, ours)
    handlers.append((path, ours, *given))


def remove(handlers: list[Any], *kinds: type) -> None:
    """Let none of these answer."""
    handlers[:] = [one for one in handlers if one[1] not in kinds]
