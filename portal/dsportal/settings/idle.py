"""Settings of idle sessions: when they are warned and stopped."""

from dsportal.settings.table import Table, setting
from dsportal.values import Tables
from jupyterhub_gpu_slurm.defaults import IdleDefaults


class GroupIdle(Table):
    """Idle limit for the sessions of a group's members."""

    minutes: float = setting(
        ...,
        "The time without use after which a session is stopped; 0 for never.",
        unit="minutes",
        ge=0,
    )


class Idle(Table):
    """Idle sessions: one that nobody uses is stopped, which frees its GPUs."""

    minutes: float = setting(
        120.0,
        "The time without use after which a session is stopped; 0 for never. A running cell, a "
        "busy GPU or processor, and a program that writes to a terminal are use; an open page is "
        "not.",
        unit="minutes",
        ge=0,
    )
    warning_minutes: float = setting(
        IdleDefaults.warning_minutes,
        "How long in advance JupyterLab warns that an idle session will be stopped; at most half "
        "of the idle time.",
        unit="minutes",
        ge=0,
        le=1440,
    )
    check_interval_seconds: int = setting(
        30, "The time between two checks for sessions to stop.", unit="seconds", ge=1, le=3600
    )
    groups: Tables[GroupIdle] = setting(
        {},
        "The idle time for members of the group NAME, instead of the general one; for a user in "
        "several of these groups, the most generous one counts.",
    )
