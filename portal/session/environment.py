"""The environment of a session: built from nothing, not cleaned from something.

What the user's shell, the hub's service or the submitting process had set does not
arrive here: a ``PYTHONPATH`` or ``LD_PRELOAD`` of anybody changes no session. The
server, its kernels and its terminals all get this environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

SANE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"

# What says which devices are the job's, and where its scratch space is.
_KEPT = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "NVIDIA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK",
        "TMPDIR",
    }
)

# Slurm's variables that describe the job and that every batch job sets anew, so that
# a job submitted from the session's terminal never inherits them. The rest stays out:
# srun(1) reads SLURM_CPUS_PER_TASK, SLURM_MEM_PER_NODE, SLURM_EXPORT_ENV, SLURM_GPUS
# and more as its options, and sbatch hands them on to the new job, where for instance
# SLURM_MEM_PER_NODE beside a job's own --mem-per-cpu is fatal (Slurm 22.05).
_KEPT_OF_SLURM = frozenset(
    {
        "SLURM_CLUSTER_NAME",
        "SLURM_CONF",
        "SLURM_CPUS_ON_NODE",
        "SLURM_GPUS_ON_NODE",
        "SLURM_JOBID",
        "SLURM_JOB_ACCOUNT",
        "SLURM_JOB_CPUS_PER_NODE",
        "SLURM_JOB_END_TIME",
        "SLURM_JOB_GID",
        "SLURM_JOB_GPUS",
        "SLURM_JOB_ID",
        "SLURM_JOB_NAME",
        "SLURM_JOB_NODELIST",
        "SLURM_JOB_NUM_NODES",
        "SLURM_JOB_PARTITION",
        "SLURM_JOB_QOS",
        "SLURM_JOB_START_TIME",
        "SLURM_JOB_UID",
        "SLURM_JOB_USER",
        "SLURM_NNODES",
        "SLURM_NODELIST",
        "SLURM_NODENAME",
        "SLURM_SUBMIT_HOST",
        "SLURMD_NODENAME",
        "SLURM_TASKS_PER_NODE",
    }
)

# The hub's own: never a session's, even where a spawner's ``env_keep`` names them.
_NEVER_FROM_THE_HUB = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV"})
_NEVER_PREFIXES = ("PYTHON", "LD_", "CONDA_")


@dataclass(frozen=True)
class Account:
    """What the password database says of the user."""

    name: str
    home: str
    shell: str


@dataclass(frozen=True)
class ModulesEntry:
    """How what runs in a session comes to environment modules."""

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
) -> dict[str, str]:
    """Put a session's environment together.

    ``inherited`` is what Slurm started the process with, ``given`` what the hub
    sent; where both name a variable, the hub's wins.
    """
    environment = {
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell or "/bin/sh",
        "PATH": SANE_PATH,
        "LANG": "C.UTF-8",
    }
    kept = _KEPT | _KEPT_OF_SLURM
    environment |= {name: value for name, value in inherited.items() if name in kept}
    environment |= {name: value for name, value in given.items() if _may_come_from_the_hub(name)}
    environment |= modules.variables()
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
