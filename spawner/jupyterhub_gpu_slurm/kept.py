"""What a session's spawner keeps, so that a hub that is started anew finds the session again."""

from typing import Any

from jupyterhub import orm
from traitlets import Bool, Dict, Integer, List, Unicode

from jupyterhub_gpu_slurm.traits import SlurmTraits

_KEPT = (
    "session_id",
    "session_options",
    "session_port",
    "token_id",
    "client_secret",
    "is_ready",
    "held_gpus",
    "session_groups",
    "extensions",
)


class Kept(SlurmTraits):
    """Writes the session into JupyterHub's database, and reads it back.

    JupyterHub clears the state when a start has failed and when the session has stopped: both
    free what was held.
    """

    session_id = Unicode()
    """Marks the job as this session's; chosen before the submission, so that a job whose number
    never reached us can still be found and cancelled."""
    session_options = Dict()
    """The options that the session was started with."""
    session_port = Integer(0)
    """Where the session said that it listens; 0 before."""
    token_id = Integer(0)
    """The hub's number of the token that the session holds; the token itself is not kept."""
    client_secret = Unicode()
    """The salted hash of the session's OAuth secret, as the hub's database has it."""
    is_ready = Bool(False)
    """Whether the start has come to its end. What is loaded without it was interrupted."""
    held_gpus = Integer(None, allow_none=True)
    """What the session was granted; ``None``: there is no session."""
    session_groups = List(Unicode())
    """The user's groups when the session was submitted."""
    extensions = Integer(0)
    """How often the session has been extended."""

    _is_interrupted = False

    def get_state(self) -> dict[str, Any]:
        """Return what must survive a restart of the hub."""
        state: dict[str, Any] = super().get_state()
        state.pop("job_status", None)
        values = {name: getattr(self, name) for name in _KEPT}
        return state | {
            name: value for name, value in values.items() if value != self.trait_defaults(name)
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_state` gave."""
        super().load_state(state)
        for name in _KEPT:
            if name in state:
                setattr(self, name, state[name])
        if self.session_id and not self.is_ready:
            self._is_interrupted = True
            # So JupyterHub keeps the session's token when it notes that there is no server.
            self.will_resume = True

    def clear_state(self) -> None:
        """Forget the session, and revoke its token; an interrupted one waits to be taken over."""
        if self._is_interrupted:
            return
        super().clear_state()
        self._forget_session()

    def _forget_session(self) -> None:
        # JupyterHub revokes the token that it remembers; after a restart it remembers none.
        token = self.user.db.get(orm.APIToken, self.token_id) if self.token_id else None
        if token is not None:
            self.user.db.delete(token)
            self.user.db.commit()
        self.job_id = ""
        for name in _KEPT:
            setattr(self, name, self.trait_defaults(name))
        self.will_resume = False

    def _save_state(self) -> None:
        self.orm_spawner.state = self.get_state()
        self.user.db.commit()
