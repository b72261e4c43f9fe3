"""Access control of the cluster service: who may look, and how many streams each may open."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dsportal.cluster.view import Viewer

STREAMS_EACH = 20
"""More than somebody's open tabs and sessions need; a script that opens thousands is stopped."""


class TooManyStreams(Exception):
    """The user has as many event streams open as is allowed."""


class ViewerAccess:
    """Counts the streams of each user."""

    def __init__(self) -> None:
        self._streams: Counter[str] = Counter()

    @property
    def streams(self) -> int:
        """How many streams are followed."""
        return self._streams.total()

    @contextmanager
    def seat(self, name: str) -> Iterator[None]:
        """Let somebody follow one more stream; raises `TooManyStreams`."""
        if self._streams[name] >= STREAMS_EACH:
            raise TooManyStreams
        self._streams[name] += 1
        try:
            yield
        finally:
            self._streams[name] -= 1
            if not self._streams[name]:
                del self._streams[name]


def is_admin(model: Mapping[str, Any]) -> bool:
    """Say whether the hub's word on somebody names an admin."""
    return model.get("kind") == "user" and model.get("admin") is True


def viewer_of(model: Mapping[str, Any], show_names: bool) -> Viewer:
    """Say what somebody whom the hub knows may see. A service has no jobs and no names."""
    name = str(model["name"]) if model.get("kind") == "user" else None
    return Viewer(name, show_names or is_admin(model))
