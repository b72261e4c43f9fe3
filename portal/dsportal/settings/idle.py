"""Settings of unused sessions: how long they may be so."""

from dsportal.settings.table import Table, setting
from dsportal.values import Tables
from jupyterhub_gpu_slurm.defaults import IdleDefaults


class GroupIdle(Table):
    """How long the sessions of a group's members may be unused."""

    minutes: float = setting(
        ..., "The time without use after which a session ends; 0 for never.", unit="minutes", ge=0
    )


class Idle(Table):
    """Sessions that nobody uses end, and give their GPUs back."""

    minutes: float = setting(
        120.0,
        "The time without use after which a session ends; 0 for never. A cell that runs, a GPU or "
        "a processor that works, and a program that writes to a terminal are use; an open page is "
        "not.",
        unit="minutes",
        ge=0,
    )
    warning_minutes: float = setting(
        IdleDefaults.warning_minutes,
        "How long before such an end JupyterLab warns; at most half of the time without use.",
        unit="minutes",
        ge=0,
        le=1440,
    )
    check_interval_seconds: int = setting(
        30, "The time between two looks for sessions to end.", unit="seconds", ge=1, le=3600
    )
    groups: Tables[GroupIdle] = setting(
        {},
        "The time for the members of the group NAME, in place of the one for all; of several "
        "groups of a user, the most generous counts.",
    )
