"""Stopping a session whose start was interrupted by the hub's end, and has not been resumed.

A hub that was started again has no server for such a start until the reconciler sends it anew:
some seconds, or longer while Slurm does not answer. JupyterHub answers a stop then with 204 and
does nothing, since there is no server to stop; and the session that nobody wants any more starts.
Here the stop ends it.

Tried with JupyterHub 6.1.1.
"""

from typing import Any

from jupyterhub.apihandlers.users import UserServerAPIHandler
from jupyterhub.scopes import needs_scope

from dsportal.hub import starts

_delete_of_jupyterhub = UserServerAPIHandler.delete


@needs_scope("delete:servers")  # type: ignore[untyped-decorator]
async def delete(self: Any, user_name: str, server_name: str = "") -> None:
    """Give the start up, if there is one; 202 while that takes long, as for any stop."""
    user = self.find_user(user_name)
    for spawner in starts.interrupted(user) if user is not None else []:
        if spawner.name == server_name:
            await starts.give_up(spawner, self.slow_stop_timeout)
    await _delete_of_jupyterhub(self, user_name, server_name)


def install() -> None:
    """Let every stop through the API begin with this."""
    UserServerAPIHandler.delete = delete
