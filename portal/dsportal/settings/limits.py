"""Settings of limits: what users may have."""

from dsportal.settings.table import Table, setting
from dsportal.values import SlurmName, SlurmNames, Tables


class UserLimits(Table):
    """Limits of users whose groups do not set the key."""

    max_gpus_per_session: int | None = setting(
        None, "The most GPUs in one session.", unit="GPUs", ge=0
    )
    max_gpus: int | None = setting(
        None, "The most GPUs at once, over all of the user's sessions.", unit="GPUs", ge=0
    )
    max_hours: float | None = setting(
        None, "The longest session time.", unit="hours", gt=0, le=8760
    )
    max_sessions: int | None = setting(
        None, "The most sessions at once, including those that wait in the queue.", ge=0
    )
    partitions: SlurmNames | None = setting(
        None, "The partitions that are offered, out of those that Slurm opens to the user."
    )
    account: SlurmName | None = setting(
        None,
        "The Slurm account that the sessions' jobs are charged to; users cannot choose another.",
    )
    qos: SlurmName | None = setting(
        None, "The QOS of the sessions' jobs; users cannot choose another."
    )
    reservation: SlurmName | None = setting(
        None, "The Slurm reservation that the sessions' jobs use, such as one for a course."
    )

    reservations: SlurmNames | None = setting(
        None, "The reservations that users may choose from; if not set, there is no choice."
    )
    constraints: SlurmNames | None = setting(
        None,
        "The node features (`--constraint`) that users may choose from, as Slurm names them; if "
        "not set, there is no choice.",
    )


class LimitSettings(Table):
    """Limits of users, by default and by group."""

    default: UserLimits = UserLimits()
    groups: Tables[UserLimits] = setting(
        {}, "Limits for members of the group NAME, a Unix or LDAP group."
    )
