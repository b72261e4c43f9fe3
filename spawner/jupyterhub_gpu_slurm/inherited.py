"""The options that come from batchspawner and JupyterHub: which count, and what to set instead.

Nothing that a site wrote is ignored in silence. An option that means something here is obeyed
(`OBEYED`); any other that is set is refused when the hub starts, with what to set for it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any

OBEYED = {
    "req_partition": "the partition if the user chooses none",
    "req_runtime": "the time if the user chooses none, in Slurm's format: `8:00:00`, `1-00:00:00`",
    "req_account": "the account if no limit names one",
    "req_qos": "the QOS if no limit names one",
    "req_reservation": "the reservation if no limit names one",
    "req_options": "options for sbatch in all sessions, such as `--constraint=v100 --nice=10`",
}
"""Of batchspawner's, and what they mean here."""

_SHARE = "it comes with the GPUs that the user chooses; set"
_PROGRAM = "the launcher runs Slurm's programs; see"
_ENVIRONMENT = "a session starts with an empty environment; set variables with"
INSTEAD = {
    # batchspawner's.
    "batch_script": "the job script is not a template; set options for sbatch with `req_options`",
    "batch_submit_cmd": f"{_PROGRAM} `launcher_cmd`",
    "batch_query_cmd": "one query asks for all jobs; see `slurm_bin_dir` and `query_interval`",
    "batch_cancel_cmd": f"{_PROGRAM} `launcher_cmd`",
    "batchspawner_singleuser_cmd": "the job runs `session_python`",
    "exec_prefix": f"{_PROGRAM} `launcher_cmd`",
    "req_cluster": "a hub serves one cluster, the one in `slurm_conf`",
    "req_epilogue": "put what must run after a job into Slurm's `Epilog`",
    "req_gres": "the user chooses a number of GPUs; `default_gpus` is the form's default",
    "req_host": "Slurm chooses the node; to leave nodes out, put `--exclude` into `req_options`",
    "req_keepvars_extra": f"{_ENVIRONMENT} `environment` or `env_keep`",
    "req_memory": f"{_SHARE} `memory_mb_per_gpu` and `memory_mb_without_gpu`",
    "req_ngpus": "the user chooses a number of GPUs; `default_gpus` is the form's default",
    "req_nprocs": f"{_SHARE} `cores_per_gpu` and `cores_without_gpu`",
    "req_prologue": f"{_ENVIRONMENT} `environment`",
    "req_queue": "set `req_partition`",
    "req_srun": "the session runs in the job's batch step, without srun",
    "startup_poll_interval": "set `query_interval`",
    "state_exechost_re": "Slurm's output is parsed, not matched with patterns",
    "state_pending_re": "Slurm's output is parsed, not matched with patterns",
    "state_running_re": "Slurm's output is parsed, not matched with patterns",
    "state_unknown_re": "Slurm's output is parsed, not matched with patterns",
    # JupyterHub's.
    "args": "the job runs `session_python`; `session_input` holds what the session is given",
    "cmd": "the job runs `session_python`",
    "cpu_guarantee": f"{_SHARE} `cores_per_gpu`",
    "cpu_limit": f"{_SHARE} `cores_per_gpu`",
    "debug": "find a session's messages in its job's log",
    "disable_user_config": "a session's server never reads its user's configuration",
    "ip": "a session listens on its node",
    "mem_guarantee": f"{_SHARE} `memory_mb_per_gpu`",
    "mem_limit": f"{_SHARE} `memory_mb_per_gpu`",
    "notebook_dir": "a session shows its user's home; link folders into it with `session_input`",
    "port": "a session takes a free port and reports it",
    "ssl_alt_names": "a session's certificate names its node",
    "ssl_alt_names_include_local": "a session's certificate names its node",
    # jupyterhub_moss's.
    "partitions": "the form asks Slurm for them; `default_limits` and `group_limits` restrict them",
    "singularity_cmd": "set images for sessions with `session_images`",
    "slurm_info_cmd": "the form asks Slurm itself; see `slurm_bin_dir`",
    "slurm_info_resources": "the form asks Slurm itself",
}
"""What is refused, and what to do for it."""

_OTHERS = ("SlurmSpawner", "MOSlurmSpawner")
_EITHER = {"req_partition": "default_partition", "req_runtime": "default_hours"}


_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d+){0,2})", re.ASCII)


def duration(text: str) -> timedelta:
    """Read a time as ``sbatch --time`` does: ``90``, ``90:00``, ``8:00:00``, ``1-12``, ``1-12:30``.

    Raises `ValueError`.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time such as 8:00:00 or 1-00:00:00")
    parts = [int(part) for part in match["rest"].split(":")]
    if match["days"] or len(parts) == 3:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    else:
        hours, (minutes, seconds) = 0, (*parts, 0)[:2]
    days = int(match["days"] or 0)
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def mistakes(config: Mapping[str, Mapping[str, Any]], own: Collection[str]) -> list[str]:
    """Return a sentence for each option that would not do what was meant; sorted, mostly none.

    ``config`` is a configuration of JupyterHub's, section by section; ``own`` names the sections
    that our spawner reads.
    """
    return sorted({*_refused(config, own), *_elsewhere(config), *_doubled(config, own)})


def _refused(config: Mapping[str, Mapping[str, Any]], own: Collection[str]) -> Iterator[str]:
    for section in own:
        for name in config.get(section, {}):
            if name in INSTEAD:
                yield f"c.{section}.{name} has no effect: {INSTEAD[name]}."


def _elsewhere(config: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for section in _OTHERS:
        for name in config.get(section, {}):
            why = INSTEAD.get(name, f"write c.GpuSlurmSpawner.{name}")
            yield f"c.{section}.{name} has no effect: {why}."


def _doubled(config: Mapping[str, Mapping[str, Any]], own: Collection[str]) -> Iterator[str]:
    names = {name for section in own for name in config.get(section, {})}
    for theirs, ours in _EITHER.items():
        if theirs in names and ours in names:
            yield f"{theirs} and {ours} set the same thing: keep one of them."
