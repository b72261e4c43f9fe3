"""The resources that a user's other sessions hold, which count against the user's limits."""

from typing import Any

from jupyterhub_gpu_slurm.options.policy import Holding
from jupyterhub_gpu_slurm.slurm.client import SlurmClient


class OtherSessions:
    """Counts what a user's sessions were granted, but for the one of this name.

    ``user`` is JupyterHub's: its servers' records, and the spawners of those that are active.
    """

    def __init__(self, user: Any, name: str, client: SlurmClient) -> None:
        self._user = user
        self._name = name
        self._client = client

    async def interrupted(self) -> frozenset[str]:
        """Return those whose start the hub's end interrupted, and whose job is there.

        Until such a start is taken over, only the hub's records know it. Its job may have ended
        meanwhile, so Slurm is asked; there is no question where there is no such start.

        Raises `SlurmError` when Slurm does not answer.
        """
        if not any(self._recorded(name) for name in self._names()):
            return frozenset()
        return frozenset((await self._client.sessions(self._user.name)).values())

    def holding(self, interrupted: frozenset[str]) -> Holding:
        """Return what they hold, those that wait or are starting too."""
        held = [self._held_by(name, interrupted) for name in self._names()]
        counted = [gpus for gpus in held if gpus is not None]
        return Holding(sum(counted), len(counted))

    def _names(self) -> list[str]:
        return [name for name in self._user.orm_spawners if name != self._name]

    def _held_by(self, name: str, interrupted: frozenset[str]) -> int | None:
        if recorded := self._recorded(name):
            return recorded["held_gpus"] if recorded.get("session_id") in interrupted else None
        # Not ``spawners[name]``, which would make one for every server that ever was; and spawners
        # of other classes may share the hub.
        return getattr(self._user.spawners.get(name), "held_gpus", None)

    def _recorded(self, name: str) -> dict[str, Any]:
        """Return the state of a server that is not active and yet holds something."""
        spawner = self._user.spawners.get(name)
        state: dict[str, Any] = self._user.orm_spawners[name].state or {}
        is_active = spawner is not None and spawner.active
        return {} if is_active or state.get("held_gpus") is None else state
