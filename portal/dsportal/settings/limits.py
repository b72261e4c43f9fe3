"""Settings of limits: what users may have."""

from dsportal.settings.table import Table, setting
from dsportal.values import SlurmName, SlurmNames, Tables


class UserLimits(Table):
    """What a user may have where none of the user's groups has the key."""

    max_gpus_per_session: int | None = setting(
        None, "The most GPUs in one session.", unit="GPUs", ge=0
    )
    max_gpus: int | None = setting(
        None, "The most GPUs at once, in all sessions of the user together.", unit="GPUs", ge=0
    )
    max_hours: float | None = setting(
        None, "The longest time of a session.", unit="hours", gt=0, le=8760
    )
    max_sessions: int | None = setting(
        None, "The most sessions at once, those that wait in the queue too.", ge=0
    )
    partitions: SlurmNames | None = setting(
        None, "The partitions that are offered, of those that Slurm opens to the user."
    )
    account: SlurmName | None = setting(
        None, "The account that Slurm charges the sessions' jobs to; users cannot choose another."
    )
    qos: SlurmName | None = setting(
        None, "The QOS that the sessions' jobs ask for; users cannot choose another."
    )
    reservation: SlurmName | None = setting(
        None, "The reservation of Slurm's that the sessions' jobs use, such as a course's."
    )

    reservations: SlurmNames | None = setting(
        None, "The reservations among which users may choose; without it there is no choice."
    )
    constraints: SlurmNames | None = setting(
        None,
        "The features of nodes among which users may choose (`--constraint`), as Slurm names them; "
        "without it there is no choice.",
    )


class LimitSettings(Table):
    """What users may have."""

    default: UserLimits = UserLimits()
    groups: Tables[UserLimits] = setting(
        {}, "What the members of the group NAME may have; NAME is a Unix or an LDAP group."
    )
