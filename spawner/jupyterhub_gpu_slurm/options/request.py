"""The request for a session, and the one parser for it.

The form, a link's query string and the JSON of JupyterHub's REST API all end in :func:`parse`,
which runs again where the session starts: whatever was stored or sent, only a
:class:`SessionRequest` goes further.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from jupyterhub_gpu_slurm.errors import BadOption
from jupyterhub_gpu_slurm.slurm.records import SLURM_NAME

KEYS = (
    "gpus",
    "gpu_type",
    "hours",
    "partition",
    "image",
    "account",
    "qos",
    "reservation",
    "constraint",
)

# Far above any cluster; a bound so that no absurd number travels on.
_MOST_GPUS = 1024
_MOST_HOURS = 24 * 366

# What is sent is kept as it is: a few spaces are a slip of the hand, a million are not.
_WHOLE_NUMBER = re.compile(r" {0,8}[0-9]{1,6} {0,8}", re.ASCII)
_DECIMAL = re.compile(r" {0,8}[0-9]{1,6}(\.[0-9]{1,6})? {0,8}", re.ASCII)
_NAMES = {
    "partition": (re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII), "a partition"),
    "gpu_type": (re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}", re.ASCII), "a type of GPU"),
    "image": (re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII), "an image"),
    "account": (SLURM_NAME, "an account"),
    "qos": (SLURM_NAME, "a QOS"),
    "reservation": (SLURM_NAME, "a reservation"),
    "constraint": (SLURM_NAME, "a node feature"),
}


@dataclass(frozen=True)
class SessionRequest:
    """A well-formed request. ``None`` means: the site's default."""

    gpus: int | None = None
    time: timedelta | None = None
    partition: str | None = None
    gpu_type: str | None = None
    """Slurm's word for a model of GPU; ``None``: any."""
    image: str | None = None
    """The site's name of the image in which the session runs; ``None``: in none."""

    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    """A feature that the node must have; ``None``: any node."""

    def as_json(self) -> dict[str, int | float | str]:
        """Return the request as JupyterHub stores it; :func:`parse` reads it back."""
        stored: dict[str, int | float | str] = {}
        if self.gpus is not None:
            stored["gpus"] = self.gpus
        if self.time is not None:
            stored["hours"] = self.time / timedelta(hours=1)
        names = {key: getattr(self, key) for key in _NAMES}
        return stored | {key: name for key, name in names.items() if name is not None}


def parse(options: object) -> SessionRequest:
    """Read options as they come from JSON, or from a form through :func:`single_values`.

    Raises `BadOption` for anything that is not a mapping of the known keys to sound values.
    """
    if not isinstance(options, Mapping):
        raise BadOption('The options must be a JSON object, such as {"gpus": 1}.')
    for key in options:
        if key not in KEYS:
            raise BadOption(f"Unknown option {_shown(key)}. The options are {', '.join(KEYS)}.")
    gpus = options.get("gpus")
    hours = options.get("hours")
    names = {key: value for key in _NAMES if (value := options.get(key)) not in ("", None)}
    return SessionRequest(
        gpus=None if gpus is None else _gpus(gpus),
        time=None if hours is None else _time(hours),
        **{key: _name(key, value) for key, value in names.items()},
    )


def single_values(fields: Mapping[str, list[str]]) -> dict[str, str]:
    """Take the one value of each field of a form or query string.

    Raises `BadOption` for a field that was sent twice. JupyterHub's own field is dropped.
    """
    single: dict[str, str] = {}
    for key, values in fields.items():
        if key == "_xsrf":
            continue
        if len(values) != 1:
            raise BadOption(f"Option {_shown(key)} was given {len(values)} times; give it once.")
        single[key] = values[0]
    return single


def _gpus(value: object) -> int:
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_GPUS:
        raise BadOption(
            f"The number of GPUs must be a whole number from 0 to {_MOST_GPUS}, "
            f"not {_shown(value)}."
        )
    return value


def _time(value: object) -> timedelta:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value <= _MOST_HOURS
    ):
        raise BadOption(
            f"The session time must be more than 0 and at most {_MOST_HOURS} hours, "
            f"not {_shown(value)}."
        )
    # Slurm counts time limits in minutes, and a part of one as a whole: 12.0001 hours are more than
    # 12. A thousandth of a minute is what hours with six decimals leave of minutes.
    return timedelta(minutes=max(1, math.ceil(value * 60 - 0.001)))


def _name(key: str, value: object) -> str:
    pattern, what = _NAMES[key]
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise BadOption(f"{_shown(value)} is not the name of {what}.")
    return value


def _shown(value: object) -> str:
    """Return a value as it may appear in a message: short, on one line."""
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."
