"""The sessions of whoever asks for a page, by their names.

JupyterHub's ``user.spawners[name]`` raises `ValueError` for a name that the user has no session of;
the pages look names up here.

Tried with JupyterHub 6.1.1.
"""

from typing import Any

from tornado import web


def find(user: Any, name: str) -> Any | None:
    """Return the spawner of the user's session of this name; ``None``: there is none."""
    return user.spawners[name] if name in {"", *user.orm_spawners} else None


def running(user: Any, name: str) -> Any:
    """Return the spawner of the user's session of this name; answers 409 where it does not run."""
    spawner = find(user, name)
    if spawner is None or not (spawner.ready and spawner.has_job):
        raise web.HTTPError(409, "This session is not running.")
    return spawner
