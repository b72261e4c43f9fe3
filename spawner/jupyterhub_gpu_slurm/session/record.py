"""The record of a session, saved so that it survives a restart of the hub."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from jupyterhub_gpu_slurm.session.state import SessionState


class SessionRecord:
    """State of a server's current session, saved from its submission to its end."""

    def __init__(self, write: Callable[[], None], revoke: Callable[[int], None]) -> None:
        """Begin without a session.

        ``write`` keeps what `state` is now; ``revoke`` ends a token, named by the hub's number.
        """
        self.state = SessionState()
        self.is_interrupted = False
        """Whether it was read without the end of its start, and nobody has looked for its job."""
        self._write = write
        self._revoke = revoke

    def read(self, kept: Mapping[str, Any]) -> None:
        """Take back what a hub before this one has kept."""
        self.state = SessionState.from_json(kept)
        self.is_interrupted = bool(self.state.id) and not self.state.is_ready

    def note(self, **changes: Any) -> None:
        """Change the state; it is written with what comes next."""
        self.state = replace(self.state, **changes)

    def save(self, **changes: Any) -> None:
        """Change the state, and write it: a hub that ends now must not have forgotten this."""
        self.note(**changes)
        self._write()

    def forget(self) -> None:
        """End the session's token, and know of no session."""
        # JupyterHub revokes the token that it remembers; after a restart it remembers none.
        if self.state.token_id:
            self._revoke(self.state.token_id)
        self.state = SessionState()
