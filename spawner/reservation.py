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

    def _held_by_others(self) -> Holding:
        """Return what the user's other sessions hold, those that wait or are starting too."""
        held = [
            self._held_by(name, record)
            for name, record in self.user.orm_spawners.items()
            if name != self.name
        ]
        counted = [gpus for gpus in held if gpus is not None]
        return Holding(sum(counted), len(counted))

    def _held_by(self, name: str, record: Any) -> int | None:
        # After a restart of the hub a session may be in its records only; to ask ``spawners[name]``
        # would make a spawner for every server that ever was.
        if name not in self.user.spawners:
            return (record.state or {}).get("held_gpus")
        # Spawners of other classes may share the hub.
        return getattr(self.user.spawners[name], "held_gpus", None)

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
