"""The command line and environment of a program in an image: what it sees of the host."""

from collections.abc import Mapping, Sequence
from pathlib import Path

_NVIDIA = Path("/dev/nvidiactl")
# What an image's program is told of its job and its devices. All else of a session's environment
# stays outside: the hub's tokens, what modules have set, PYTHONPATH, LD_LIBRARY_PATH.
_TOLD = frozenset(
    {
        "CUDA_DEVICE_ORDER",
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "LANG",
        "LC_ALL",
        "NVIDIA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
        "ROCR_VISIBLE_DEVICES",
        "SLURMD_NODENAME",
        "TERM",
        "TMPDIR",
        "TZ",
        "ZE_AFFINITY_MASK",
    }
)
_TOLD_PREFIXES = ("NCCL_", "GLOO_", "PORTAL_JOB_", "SLURM_")
_NEVER_TOLD = frozenset({"SLURM_JWT"})
# Packages that the user has installed for the host's Python are not for the image's.
_SET = {"PYTHONNOUSERSITE": "1"}
# Apptainer's own, which it needs itself: it may unpack an image below TMPDIR, and asks PATH for
# the programs that mount one.
_APPTAINERS_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_INSIDE = "APPTAINERENV_"


class BindError(ValueError):
    """A folder cannot be shown in an image; the message says which, and why."""


def exec_argv(
    apptainer: str,
    image: str,
    command: Sequence[str],
    *,
    home: str,
    binds: Sequence[str] = (),
    shown_at: Mapping[str, str] | None = None,
    nv: bool = False,
) -> list[str]:
    """Return what runs a command in an image, as the user, with `exec_environment`.

    It sees ``/tmp``, the home, each of ``binds`` at its own path, the host's devices and network;
    it begins in the folder where this is run. Each of ``binds`` must be there. ``shown_at`` names
    paths in the image, and the file or folder of the host that each of them shows. With ``nv`` it
    gets the NVIDIA driver's libraries: see `has_nvidia_devices`.
    """
    return [
        *(apptainer, "exec", "--cleanenv", "--no-eval"),
        *("--home", _bindable(home)),
        *(word for folder in _once(binds) for word in ("--bind", folder)),
        *(
            word
            for inside, outside in (shown_at or {}).items()
            for word in ("--bind", f"{_bindable(outside)}:{_bindable(inside)}:ro")
        ),
        *(["--nv"] if nv else []),
        *(image, *command),
    ]


def probe_argv(apptainer: str, image: str, command: Sequence[str]) -> list[str]:
    """Return what runs a command in an image that sees nothing of the user's.

    No home, no ``/tmp``, no network, no other process: for looking into an image of which nothing
    is known yet.
    """
    alone = ("--containall", "--no-home", "--net", "--network", "none", "--cwd", "/")
    return [apptainer, "exec", "--cleanenv", "--no-eval", *alone, image, *command]


def exec_environment(
    inherited: Mapping[str, str], variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment for Apptainer itself, which holds that of the program in the image.

    ``inherited``: the session's or the job's, of which the program is told what concerns its job
    and its devices; ``variables``: what it is told besides. A user's own ``APPTAINERENV_NAME``
    (or ``SINGULARITYENV_NAME``) is a variable of the program, as everywhere.
    """
    inside = {name: text for name, text in inherited.items() if is_told(name)}
    inside |= _users_own(inherited) | _SET | dict(variables or {})
    outside = {name: inherited[name] for name in ("HOME", "TMPDIR") if name in inherited}
    told = {_INSIDE + name: text for name, text in inside.items()}
    return {"PATH": _APPTAINERS_PATH, "LANG": "C.UTF-8"} | outside | told


def is_told(name: str) -> bool:
    """Whether a program in an image is told this variable of its session or job.

    >>> [is_told(name) for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JWT", "LD_LIBRARY_PATH")]
    [True, False, False]
    """
    return name not in _NEVER_TOLD and (name in _TOLD or name.startswith(_TOLD_PREFIXES))


def has_nvidia_devices(device: Path = _NVIDIA) -> bool:
    """Whether this host has an NVIDIA driver, without which ``--nv`` only warns."""
    return device.exists()


def _users_own(inherited: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(prefix): text
        for prefix in ("SINGULARITYENV_", _INSIDE)
        for name, text in inherited.items()
        if name.startswith(prefix)
    }


def _once(folders: Sequence[str]) -> list[str]:
    return [_bindable(folder) for folder in dict.fromkeys(folders)]


def _bindable(folder: str) -> str:
    # Apptainer reads SOURCE:DESTINATION:OPTIONS, several with commas between (--bind).
    if not folder.startswith("/") or any(sign in folder for sign in ",:\\"):
        raise BindError(
            f"{folder} cannot be shown in an image: a path must begin with / and have no comma, "
            "colon or backslash in it. Name another folder in containers.binds or session.folders."
        )
    return folder
