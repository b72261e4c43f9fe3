"""Profiles: named sizes of a site, each of which fills in the form."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from jupyterhub_gpu_slurm.errors import BadOption
from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.request import KEYS, SessionRequest, parse


@dataclass(frozen=True)
class Profile:
    """A named size. Whether a user may have it is decided as for any request."""

    title: str
    description: str
    request: SessionRequest

    @property
    def asked(self) -> dict[str, str]:
        """What it asks for, as a form's fields."""
        asked = {key: f"{value}" for key, value in self.request.as_json().items()}
        if self.request.time is not None:
            asked["hours"] = words.hours(self.request.time)
        return asked

    @property
    def query(self) -> str:
        """The query string of a link that fills in the form with it."""
        return urlencode({f"opt-{key}": value for key, value in self.asked.items()})


def read(table: object) -> Profile:
    """Read a table such as ``{"title": "Small", "description": "To try things", "gpus": 1}``.

    Raises `ValueError`.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"{table!r}: must be a table such as {{'title': 'Small', 'gpus': 1}}")
    title, description = table.get("title"), table.get("description", "")
    if not isinstance(title, str) or not title.strip() or not isinstance(description, str):
        raise ValueError("a profile needs a title, and may have a description, both of them text")
    asked = {key: value for key, value in table.items() if key not in ("title", "description")}
    try:
        request = parse(asked)
    except BadOption as error:
        raise ValueError(str(error)) from error
    if request == SessionRequest():
        raise ValueError(f"a profile needs at least one of {', '.join(KEYS)}")
    return Profile(title, description, request)
