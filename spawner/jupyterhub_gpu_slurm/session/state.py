"""The state of a session in JupyterHub's database, which survives a restart of the hub."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

VERSION = 1
# Names that the record has had since before it had a version.
_NAMES = {
    "id": "session_id",
    "options": "session_options",
    "port": "session_port",
    "gpus": "held_gpus",
    "groups": "session_groups",
}


@dataclass(frozen=True)
class SessionState:
    """A session, from before its submission to its end; without an id there is none."""

    id: str = ""
    """Marks the job as this session's; chosen before the submission, so that a job whose number
    never reached us can still be found and cancelled."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that the session was started with."""
    port: int = 0
    """Where the session said that it listens; 0 before."""
    token_id: int = 0
    """The hub's number of the token that the session holds; the token itself is not kept."""
    client_secret: str = ""
    """The salted hash of the session's OAuth secret, as the hub's database has it."""
    is_ready: bool = False
    """Whether the start has come to its end. What is loaded without it was interrupted."""
    gpus: int | None = None
    """What the session was granted; ``None``: there is no session."""
    groups: tuple[str, ...] = ()
    """The user's groups when the session was submitted."""
    extensions: int = 0
    """How often the session has been extended."""
    asked_at: float = 0.0
    """When it was submitted, in seconds since 1970; 0: an older release wrote it."""

    def to_json(self) -> dict[str, Any]:
        """Return what differs from no session at all, and the record's version."""
        nothing = SessionState()
        written: dict[str, Any] = {
            _NAMES.get(each.name, each.name): value
            for each in fields(self)
            if (value := getattr(self, each.name)) != getattr(nothing, each.name)
        }
        if "session_groups" in written:
            written["session_groups"] = list(self.groups)
        return written | {"version": VERSION} if written else {}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read a record of any version, as far as it has what is known here."""
        found = {each.name: _NAMES.get(each.name, each.name) for each in fields(cls)}
        values = {name: record[key] for name, key in found.items() if key in record}
        return cls(**values | {"groups": tuple(values.get("groups", ()))})
