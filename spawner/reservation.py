"""What each session of a user holds, so that the next one can be counted against a limit."""

from typing import Any

from spawner.policy import Holding
from spawner.traits import SlurmTraits


class Reservation(SlurmTraits):
    """Remembers what its session was granted, in the state that survives the hub.

    JupyterHub clears the state when a start has failed and when the session has stopped: both
    free what was reserved.
    """

    held_gpus: int | None = None
    """``None``: no session."""

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

    def get_state(self) -> dict[str, Any]:
        """Return what must survive a restart of the hub."""
        state: dict[str, Any] = super().get_state()
        if self.held_gpus is not None:
            state["held_gpus"] = self.held_gpus
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_state` gave."""
        super().load_state(state)
        self.held_gpus = state.get("held_gpus")

    def clear_state(self) -> None:
        """Free what is held."""
        super().clear_state()
        self.held_gpus = None
