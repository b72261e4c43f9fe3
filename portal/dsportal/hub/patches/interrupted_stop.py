"""Stopping a session whose start was interrupted by the hub's end, and has not been resumed.

A hub that was started again has no server for such a start until the reconciler sends it anew:
some seconds, or longer while Slurm does not answer. JupyterHub answers a stop then with 204 and
does nothing, since there is no server to stop; and the session that nobody wants any more starts.
Here the stop ends it.

Tried with JupyterHub 6.1.1.
"""

import asyncio
from typing import Any

from jupyterhub.apihandlers.users import UserServerAPIHandler
from jupyterhub.scopes import needs_scope

_delete_of_jupyterhub = UserServerAPIHandler.delete


@needs_scope("delete:servers")  # type: ignore[untyped-decorator]
async def delete(self: Any, user_name: str, server_name: str = "") -> None:
    """Give the start up, if there is one; 202 while that takes long, as for any stop."""
    user = self.find_user(user_name)
    for spawner in interrupted_starts(user) if user is not None else []:
        if spawner.name == server_name:
            await give_up(spawner, self.slow_stop_timeout)
    await _delete_of_jupyterhub(self, user_name, server_name)


def interrupted_starts(user: Any) -> list[Any]:
    """Return the user's spawners whose starts nobody has resumed yet."""
    known = [user.spawners[name] for name in user.orm_spawners]
    return [one for one in known if not one.active and getattr(one, "is_interrupted", False)]


async def give_up(spawner: Any, seconds: float) -> None:
    """End such a start, and wait for it so long."""
    # So that nobody starts it meanwhile: neither the reconciler nor the user.
    spawner._stop_pending = True
    spawner._stop_future = asyncio.ensure_future(_given_up(spawner))
    done, _ = await asyncio.wait([spawner._stop_future], timeout=seconds)
    for one in done:
        one.result()


async def _given_up(spawner: Any) -> None:
    try:
        await spawner.give_up()
    finally:
        spawner._stop_pending, spawner._stop_future = False, None


def install() -> None:
    """Let every stop through the API begin with this."""
    UserServerAPIHandler.delete = delete
