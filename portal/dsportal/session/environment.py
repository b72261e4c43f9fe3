"""Environment variables of a session: built from nothing, not cleaned from something.

What the user's shell, the hub's service or the submitting process had set does not
arrive here: a ``PYTHONPATH`` or ``LD_PRELOAD`` of anybody changes no session. The
server, its kernels and its terminals all get this environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

SANE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"

# What says which devices are the job's, where its scratch space is, and which cluster Slurm's
# programs ask.
_KEPT = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "NVIDIA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "SLURM_CONF",
        "TMPDIR",
        "ZE_AFFINITY_MASK",
    }
)

# What describes the job, and what it is called in a session. Under Slurm's names it would make a
# step of the session's job of every srun in a terminal, hand options of the session's on to other
# jobs (SLURM_MEM_PER_NODE beside a job's own --mem-per-cpu is fatal, Slurm 22.05), and have
# Lightning or MPI take a notebook for one of a job's processes. Slurm's epilog reads the job, the
# node and the cluster.
_JOB_VARIABLES = {
    "SLURM_CLUSTER_NAME": "PORTAL_JOB_CLUSTER",
    "SLURM_CPUS_ON_NODE": "PORTAL_JOB_CORES",
    "SLURM_GPUS_ON_NODE": "PORTAL_JOB_GPUS",
    "SLURM_JOB_END_TIME": "PORTAL_JOB_END_TIME",
    "SLURM_JOB_ID": "PORTAL_JOB_ID",
    "SLURM_JOB_NAME": "PORTAL_JOB_NAME",
    "SLURMD_NODENAME": "PORTAL_JOB_NODE",
}

# The hub's own: never a session's, even where a spawner's ``env_keep`` names them.
_NEVER_FROM_THE_HUB = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV"})
_NEVER_PREFIXES = ("PYTHON", "LD_", "CONDA_")


@dataclass(frozen=True)
class Account:
    """The user's entry in the password database."""

    name: str
    home: str
    shell: str


@dataclass(frozen=True)
class ModulesEntry:
    """Access to environment modules from programs in a session."""

    init: str | None = None
    """The file that defines ``module`` in bash; ``None`` where there are none."""
    paths: tuple[str, ...] = ()

    def variables(self) -> dict[str, str]:
        """Return what tells bash of them.

        A bash that is neither a login's nor a person's reads BASH_ENV alone (bash(1)): so the
        scripts that are submitted from a session have ``module``, whatever the user's own files
        say.
        """
        if self.init is None:
            return {}
        return {"BASH_ENV": self.init, "MODULEPATH": ":".join(self.paths)}


def session_environment(
    account: Account,
    inherited: Mapping[str, str],
    given: Mapping[str, str],
    jupyter_path: tuple[str, ...] = (),
    modules: ModulesEntry = ModulesEntry(),  # frozen
    programs: Mapping[str, str] = MappingProxyType({}),
    defaults: Mapping[str, str] = MappingProxyType({}),
    slurm_bin_dir: str | None = None,
) -> dict[str, str]:
    """Put a session's environment together.

    ``inherited`` is what Slurm started the process with, ``given`` what the hub
    sent; where both name a variable, the hub's wins. ``programs``: what leads to programs of ours;
    its PATH comes behind the rest. ``defaults``: what holds where the hub sent nothing else.
    ``slurm_bin_dir``: where Slurm's programs are, which come first where the system has others.
    """
    environment = {
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell or "/bin/sh",
        "PATH": SANE_PATH,
        "LANG": "C.UTF-8",
    }
    environment |= {name: value for name, value in inherited.items() if name in _KEPT}
    environment |= {
        ours: inherited[slurms] for slurms, ours in _JOB_VARIABLES.items() if slurms in inherited
    }
    environment |= {**defaults}
    environment |= {name: value for name, value in given.items() if _may_come_from_the_hub(name)}
    environment |= modules.variables() | {**programs}
    folder = (slurm_bin_dir or "").rstrip("/")
    slurm = () if folder in SANE_PATH.split(":") else (folder,)
    environment["PATH"] = ":".join(filter(None, (*slurm, SANE_PATH, programs.get("PATH"))))
    if jupyter_path:
        environment["JUPYTER_PATH"] = ":".join(jupyter_path)
    return environment


def _may_come_from_the_hub(name: str) -> bool:
    return name not in _NEVER_FROM_THE_HUB and not name.startswith(_NEVER_PREFIXES)


def with_port(url: str, port: int) -> str:
    """Put the real port into the address that the hub planned."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    name = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return parts._replace(netloc=f"{name}:{port}").geturl()
