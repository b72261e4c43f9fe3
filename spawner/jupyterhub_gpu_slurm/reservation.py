"""What the sessions of a user hold, so that the next one can be counted against a limit."""

from typing import Any

from jupyterhub_gpu_slurm.certified import Certified
from jupyterhub_gpu_slurm.policy import Holding


class Reservation(Certified):
    """Counts what the user's sessions were granted."""

    async def _interrupted(self) -> frozenset[str]:
        """Return the user's sessions whose start the hub's end interrupted, and whose job is there.

        Until such a start is taken over, only the hub's records know it. Its job may have ended
        meanwhile, so Slurm is asked; there is no question where there is no such start.

        Raises `SlurmError` when Slurm does not answer.
        """
        if not any(self._recorded(name) for name in self.user.orm_spawners if name != self.name):
            return frozenset()
        return frozenset((await self._slurm.client.sessions(self.user.name)).values())

    def _held_by_others(self, interrupted: frozenset[str]) -> Holding:
        """Return what the user's other sessions hold, those that wait or are starting too."""
        names = [name for name in self.user.orm_spawners if name != self.name]
        held = [self._held_by(name, interrupted) for name in names]
        counted = [gpus for gpus in held if gpus is not None]
        return Holding(sum(counted), len(counted))

    def _held_by(self, name: str, interrupted: frozenset[str]) -> int | None:
        if recorded := self._recorded(name):
            return recorded["held_gpus"] if recorded.get("session_id") in interrupted else None
        # Not ``spawners[name]``, which would make one for every server that ever was; and spawners
        # of other classes may share the hub.
        return getattr(self.user.spawners.get(name), "held_gpus", None)

    def _recorded(self, name: str) -> dict[str, Any]:
        """Return the state of a server that is not active and yet holds something."""
        spawner = self.user.spawners.get(name)
        state: dict[str, Any] = self.user.orm_spawners[name].state or {}
        is_active = spawner is not None and spawner.active
        return {} if is_active or state.get("held_gpus") is None else state
