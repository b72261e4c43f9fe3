"""What the libraries that carry gradients are told: NCCL's variables, UCX's and gloo's.

NCCL's algorithm, protocol, InfiniBand devices and GPUDirect are chosen by environment variables
(https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html). NCCL passes over a variable
that it does not know without a word, so a result says what was set, whoever set it: the notebook,
a module, or the site.
"""

import re
from collections.abc import Mapping

PREFIXES = ("NCCL_", "UCX_", "GLOO_")
_NAME = re.compile(rf"(?:{'|'.join(PREFIXES)})[A-Z0-9_]+")


class TransportError(ValueError):
    """A variable cannot be set; the message names it and the rule."""


def checked(wanted: Mapping[str, object]) -> dict[str, str]:
    """Return variables for a job by name, values as text.

    >>> checked({"NCCL_PROTO": "Simple", "NCCL_MIN_NCHANNELS": 4})
    {'NCCL_MIN_NCHANNELS': '4', 'NCCL_PROTO': 'Simple'}

    Raises `TransportError` for a name that is none of theirs.
    """
    for name in wanted:
        if not _NAME.fullmatch(name):
            raise TransportError(
                f"{name!r} is not a variable of the communication libraries: their names begin "
                f"with {', '.join(PREFIXES[:-1])} or {PREFIXES[-1]}, as NCCL_ALGO does"
            )
    return {name: str(wanted[name]) for name in sorted(wanted)}


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return those that are set in a process's environment, by name."""
    return {name: environment[name] for name in sorted(environment) if _NAME.fullmatch(name)}


def recorded(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return what a result keeps of them: nothing where none is set."""
    found = variables(environment)
    return {"transport": found} if found else {}


def words(found: Mapping[str, str]) -> str:
    """Say them in a table's cell.

    >>> words({"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"})
    'NCCL_ALGO=Ring NCCL_PROTO=Simple'
    """
    return " ".join(f"{name}={value}" for name, value in found.items())
