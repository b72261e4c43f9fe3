"""The options inherited from batchspawner and JupyterHub: obeyed, or refused with an alternative.

Nothing that a site wrote is ignored in silence. An option that means something here is obeyed
(`OBEYED`); any other that is set is refused when the hub starts, with what to set for it. So is a
name that is no option at all, such as a misspelt one.
"""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from traitlets.config import Configurable, LoggingConfigurable
from traitlets.config.loader import LazyConfigValue

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
    "daemon_resolver": "a node is reached at its `NodeAddr` in Slurm",
    "req_cluster": "a hub serves one cluster, the one in `slurm_conf`",
    "req_epilogue": "put what must run after a job into Slurm's `Epilog`",
    "req_gres": "the user chooses a number of GPUs; `default_gpus` is the form's default",
    "req_homedir": "a session shows its user's home",
    "req_host": "Slurm chooses the node; to leave nodes out, put `--exclude` into `req_options`",
    "req_keepvars": f"{_ENVIRONMENT} `environment` or `env_keep`",
    "req_keepvars_extra": f"{_ENVIRONMENT} `environment` or `env_keep`",
    "req_memory": f"{_SHARE} `memory_mb_per_gpu` and `memory_mb_without_gpu`",
    "req_ngpus": "the user chooses a number of GPUs; `default_gpus` is the form's default",
    "req_nprocs": f"{_SHARE} `cores_per_gpu` and `cores_without_gpu`",
    "req_prologue": f"{_ENVIRONMENT} `environment`",
    "req_queue": "set `req_partition`",
    "req_srun": "the session runs in the job's batch step, without srun",
    "req_username": "a session's job belongs to its user",
    "startup_poll_interval": "set `query_interval`",
    "state_exechost_exp": "Slurm's output is parsed, not matched with patterns",
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

OTHERS = (
    "BatchSpawnerRegexStates",
    "CondorSpawner",
    "GridengineSpawner",
    "LsfSpawner",
    "MOSlurmSpawner",
    "MoabSpawner",
    "MultiSlurmSpawner",
    "PBSSpawner",
    "SlurmSpawner",
    "TorqueSpawner",
)
"""Spawners of batchspawner and jupyterhub_moss: what is set for them does not reach this one."""

_DISTRIBUTED = ("batchspawner", "jupyterhub", "jupyterhub_gpu_slurm")
_OURS = "GpuSlurmSpawner"
_SIMILARITY = 0.75
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


@dataclass(frozen=True)
class KnownOptions:
    """Options of a hub's spawner: `GpuSlurmSpawner`, or a site's subclass of it."""

    sections: frozenset[str]
    """Of the configuration: the spawner's class, its bases and mixins."""
    options: frozenset[str]
    attributes: frozenset[str]
    """What JupyterHub's ``group_overrides`` can set: options, and other attributes."""
    hub_wide: frozenset[str]
    """The options that all sessions of a hub share."""
    sites_own: frozenset[str]
    """The options that a site's subclass declares: it knows what to do with them."""

    @classmethod
    def of(cls, spawner: type[Configurable]) -> Self:
        """Return what can be set for a class of spawners."""
        options = spawner.class_traits(config=True)
        return cls(
            # Others than spawners read those that all configurable classes have.
            frozenset(spawner.section_names()) - set(LoggingConfigurable.section_names()),
            frozenset(options),
            frozenset(dir(spawner)),
            frozenset(spawner.class_traits(config=True, hub_wide=True)),
            frozenset(name for name, trait in options.items() if _is_sites(trait.this_class)),
        )


def _is_sites(kind: type[Any] | None) -> bool:
    return kind is not None and kind.__module__.partition(".")[0] not in _DISTRIBUTED


def mistakes(config: Mapping[str, Mapping[str, Any]], known: KnownOptions) -> list[str]:
    """Return a sentence for each option that would not do what was meant; sorted, mostly none.

    ``config`` is a configuration of JupyterHub's, section by section.
    """
    return sorted(
        {
            *_without_effect(config, known),
            *_for_others(config, known),
            *_for_groups(config, known),
            *_set_twice(config, known.sections),
        }
    )


def override_mistakes(overrides: Mapping[str, Any], known: KnownOptions) -> list[str]:
    """Return the same of one ``spawner_override`` of JupyterHub's ``group_overrides``."""
    found = {_mistake(name, known.attributes, known) for name in overrides}
    found |= {
        f"{name} holds for the whole hub: set c.{_OURS}.{name}."
        for name in known.hub_wide & overrides.keys()
    }
    return sorted(filter(None, found))


def _without_effect(config: Mapping[str, Mapping[str, Any]], known: KnownOptions) -> Iterator[str]:
    for section in known.sections:
        for name in config.get(section, {}):
            if mistake := _mistake(name, known.options, known):
                yield f"c.{section}.{mistake}"


def _for_others(config: Mapping[str, Mapping[str, Any]], known: KnownOptions) -> Iterator[str]:
    for section in set(OTHERS) - known.sections:
        for name in config.get(section, {}):
            mistake = _mistake(name, known.options, known)
            yield f"c.{section}.{mistake or f'{name} has no effect: write c.{_OURS}.{name}.'}"


def _for_groups(config: Mapping[str, Mapping[str, Any]], known: KnownOptions) -> Iterator[str]:
    for section in known.sections:
        value = config.get(section, {}).get("group_overrides")
        if isinstance(value, LazyConfigValue):
            value = value.to_dict().get("update")
        # What a function returns is checked when a session starts.
        for key, group in value.items() if isinstance(value, Mapping) else ():
            for mistake in override_mistakes(group.get("spawner_override", {}), known):
                yield f"c.{section}.group_overrides[{key!r}]: {mistake}"


def _mistake(name: str, possible: Collection[str], known: KnownOptions) -> str | None:
    """Say why setting this does nothing; ``None`` where it does something."""
    if name in INSTEAD and name not in known.sites_own:
        return f"{name} has no effect: {INSTEAD[name]}."
    # Names of sections are written with a capital letter.
    if name in possible or name[:1].isupper():
        return None
    meant = difflib.get_close_matches(name, known.options - INSTEAD.keys(), 1, _SIMILARITY)
    return f"{name} is not an option of {_OURS}" + (f"; did you mean {meant[0]}?" if meant else ".")


def _set_twice(config: Mapping[str, Mapping[str, Any]], sections: Collection[str]) -> Iterator[str]:
    names = {name for section in sections for name in config.get(section, {})}
    for theirs, ours in _EITHER.items():
        if theirs in names and ours in names:
            yield f"{theirs} and {ours} set the same thing: keep one of them."
