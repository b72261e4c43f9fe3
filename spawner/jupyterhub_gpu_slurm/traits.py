"""The spawner's settings, as JupyterHub's configuration knows them, and what is made of them."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from batchspawner import BatchSpawnerBase
from traitlets import (
    Bool,
    Callable,
    Dict,
    Float,
    Integer,
    List,
    TraitError,
    Unicode,
    default,
    validate,
)

from jupyterhub_gpu_slurm import start_limiter
from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.inherited import duration
from jupyterhub_gpu_slurm.launcher_files import launcher_cmd
from jupyterhub_gpu_slurm.options import allowance, profile
from jupyterhub_gpu_slurm.options.allowance import Allowance
from jupyterhub_gpu_slurm.options.policy import Defaults
from jupyterhub_gpu_slurm.options.session_options import SitePolicy
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.session.deadline import ExtensionRules, StartLimits
from jupyterhub_gpu_slurm.session.script import site_options
from jupyterhub_gpu_slurm.slurm.client import SlurmClient
from jupyterhub_gpu_slurm.slurm.limiters import ConcurrencyLimiter
from jupyterhub_gpu_slurm.slurm.watcher import PollIntervals


class SpawnerTraits(BatchSpawnerBase):  # type: ignore[misc]  # batchspawner has no types
    """What a site can set: ``c.GpuSlurmSpawner.NAME`` in the hub's configuration."""

    slurm_conf = Unicode(
        "/etc/slurm/slurm.conf", help="Slurm's configuration file, for the hub's own questions."
    ).tag(config=True)
    slurm_bin_dir = Unicode(
        "/usr/bin",
        help="The folder with squeue, sinfo and scontrol. An absolute path: the hub has no PATH.",
    ).tag(config=True)
    launcher_cmd = List(
        Unicode(),
        list(launcher_cmd()),
        help="""
        The argv that runs the launcher as a user; ``{username}`` stands for the user.
        The launcher is the one program that sudo must allow.
        """,
    ).tag(config=True)
    hub_mark = Unicode(
        "portal", help="Names this hub: the start of its jobs' names. Letters, digits, hyphens."
    ).tag(config=True)
    query_interval = Float(
        1.0,
        help="""
        Seconds between two questions to squeue, for all sessions of the hub together, while a
        session starts.
        """,
    ).tag(config=True)
    quiet_interval = Float(
        10.0, help="Seconds between two questions to squeue while sessions only run."
    ).tag(config=True)
    cluster_interval = Float(
        10.0,
        help="""
        Seconds between two questions to Slurm for what its nodes have free, for all who look at a
        form together. Nothing is asked while nobody looks.
        """,
    ).tag(config=True)
    launches_at_once = Integer(
        4,
        min=1,
        help="""
        How many launchers may start at the same moment, whatever the number of users who press
        Start: the hub's pages must have their share of the machine. One that waits for Slurm
        does not count after two seconds.
        """,
    ).tag(config=True)
    command_timeout = Float(
        20.0, help="Seconds after which a Slurm program is treated as unresponsive."
    ).tag(config=True)
    cores_per_gpu = Integer(
        ResourceShape.cores_per_gpu, help="CPU cores that come with each GPU."
    ).tag(config=True)
    memory_mb_per_gpu = Integer(
        ResourceShape.memory_mb_per_gpu, help="Memory in MiB that comes with each GPU."
    ).tag(config=True)
    cores_without_gpu = Integer(
        ResourceShape.cores_without_gpu, help="CPU cores of a session without GPUs."
    ).tag(config=True)
    memory_mb_without_gpu = Integer(
        ResourceShape.memory_mb_without_gpu, help="Memory in MiB of a session without GPUs."
    ).tag(config=True)
    default_gpus = Integer(
        Defaults.gpus, help="GPUs of a session if the user makes no choice."
    ).tag(config=True)
    default_hours = Float(
        Defaults.time / timedelta(hours=1),
        help="Hours of a session if the user makes no choice; the partition's limit if less.",
    ).tag(config=True)
    default_partition = Unicode(
        "", help="Partition if the user makes no choice. Empty: the cluster's default."
    ).tag(config=True)
    default_limits = Dict(
        help="""
        What a user may have where none of the user's groups says something. The keys, each of
        them optional: ``max_gpus_per_session``, ``max_gpus`` (at once, over all sessions),
        ``max_hours``, ``max_sessions`` (at once), ``partitions`` (a list), ``account``, ``qos``,
        ``reservation``; and what the form lets the user choose: ``reservations`` and
        ``constraints`` (node features), both lists.
        """,
    ).tag(config=True)
    group_limits = Dict(
        help="""
        What the members of a group may have: ``{"students": {"max_gpus": 1}}``, with the keys of
        ``default_limits``. The groups are JupyterHub's and the system's. Of several groups of a
        user, the highest figure counts, and all that their lists name is open; account, QOS and
        reservation are those of the user's first group in this order.
        """,
    ).tag(config=True)
    req_qos = Unicode("", help="The QOS where none of these limits names one.").tag(config=True)
    req_reservation = Unicode("", help="The reservation where none of these limits names one.").tag(
        config=True
    )
    offer_accounts = Bool(
        True,
        help="""
        Whether users choose among the accounts and QOS that Slurm's accounting gives them, where
        there are several and the limits name none.
        """,
    ).tag(config=True)
    profiles = Dict(
        help="""
        Sizes that fill in the form: ``{"small": {"title": "Small", "description": "To try things",
        "gpus": 1, "hours": 2}}``. The other keys are the options of a session: ``gpu_type``,
        ``partition``, ``image``, ``account``, ``qos``, ``reservation``, ``constraint``. Users see
        those that they can have.
        """,
    ).tag(config=True)
    launch_timeout = Float(
        StartLimits.launch,
        help="""
        Seconds from the job's start on its node until its server listens. The time in the queue
        counts for ``start_timeout`` only.
        """,
    ).tag(config=True)
    queue_timeout = Float(
        StartLimits.queue,
        help="Seconds in the queue after which a session is given up; below ``start_timeout``.",
    ).tag(config=True)
    end_timeout = Float(
        60.0,
        help="""
        Seconds that a job which has ended may take to leave its node. Stop waits for that, and so
        does the session's end: how it came, Slurm tells only then. It kills what does not end by
        itself after its ``KillWait``.
        """,
    ).tag(config=True)
    slurm_operator = Unicode(
        "",
        help="""
        The account through which the launcher raises time limits, and ends sessions of accounts
        that were deleted, and sees jobs where Slurm's ``PrivateData`` hides them: Slurm's
        ``SlurmUser``, or one that is an operator in Slurm's accounting. Empty: sessions are not
        extended.
        """,
    ).tag(config=True)
    extension_hours = Float(
        ExtensionRules.most_at_once / timedelta(hours=1),
        help="Hours by which a running session can be extended at once, at most.",
    ).tag(config=True)
    max_extensions = Integer(
        ExtensionRules.most_times,
        help="How often one session can be extended. 0: sessions are not extended.",
    ).tag(config=True)
    idle_minutes = Float(
        0.0,
        min=0.0,
        help="""
        Minutes that a session may be unused before it counts as over; 0: any time. The session
        tells the hub; jupyterhub-idle-culler with the hook ``dsportal.culler.decision`` ends it.
        """,
    ).tag(config=True)
    group_idle_minutes = Dict(
        value_trait=Float(min=0.0),
        help="""
        The same for the members of groups: ``{"students": 30}``. Of several groups of a user, the
        most generous counts.
        """,
    ).tag(config=True)
    idle_warning_minutes = Float(
        10.0, min=0.0, help="Minutes before such an end from which a session warns of it."
    ).tag(config=True)
    session_python = Unicode(
        help="The interpreter on the compute nodes that has ``dsportal.session``. Absolute path."
    ).tag(config=True)
    session_input = Dict(
        help="What ``dsportal.session`` is told besides its environment: folders, kernels, tools."
    ).tag(config=True)
    session_images = Dict(
        help="""
        The images that the form offers for whole sessions: name -> what ``dsportal.session`` gets
        as ``image``, with its ``title``.
        """,
    ).tag(config=True)
    image_check = Callable(
        None,
        allow_none=True,
        help="""
        Called in a thread with an image's path before a session in it is submitted; says whether
        jupyterhub-singleuser is in it, or ``None`` where that cannot be told.
        """,
    ).tag(config=True)

    session_observer = Callable(
        None,
        allow_none=True,
        help="""
        A function that hears of sessions: it is called with a
        ``jupyterhub_gpu_slurm.session.observation.SessionNews`` each time a session's job is seen
        running, and once when it has ended. It is called on the hub's event loop and must return at
        once. What it raises is logged, and changes nothing.
        """,
    ).tag(config=True)
    idle_gpu_minutes = Float(
        30.0, help="Minutes without use after which a session's GPUs count as idle in the metrics."
    ).tag(config=True)

    @default("start_timeout")
    def _default_start_timeout(self) -> int:
        # A job may wait in the queue for long; the user sees why, and can cancel.
        return 13 * 3600

    @validate("default_limits")
    def _check_default_limits(self, proposal: Any) -> Any:
        _check_limits("default_limits", proposal.value)
        return proposal.value

    @validate("req_account", "req_qos", "req_reservation")
    def _check_word(self, proposal: Any) -> Any:
        name = proposal.trait.name
        if proposal.value:
            _check_limits(name, {name.removeprefix("req_"): proposal.value})
        return proposal.value

    @validate("req_runtime", "req_options")
    def _check_text(self, proposal: Any) -> Any:
        reading = {"req_runtime": duration, "req_options": site_options}[proposal.trait.name]
        try:
            if proposal.value:
                reading(proposal.value)
        except ValueError as error:
            raise TraitError(f"{proposal.trait.name}: {error}") from error
        return proposal.value

    @validate("group_limits")
    def _check_group_limits(self, proposal: Any) -> Any:
        for name, table in proposal.value.items():
            _check_limits(f"group_limits[{name!r}]", table)
        return proposal.value

    @validate("profiles")
    def _check_profiles(self, proposal: Any) -> Any:
        for name, table in proposal.value.items():
            try:
                profile.read(table)
            except ValueError as error:
                raise TraitError(f"profiles[{name!r}]: {error}") from error
        return proposal.value

    def _allowance(self, groups: Collection[str]) -> Allowance:
        by_group = {name: allowance.read(table) for name, table in self.group_limits.items()}
        default = allowance.read(self.default_limits)
        return allowance.combine(
            replace(
                default,
                account=default.account or self.req_account or None,
                qos=default.qos or self.req_qos or None,
                reservation=default.reservation or self.req_reservation or None,
            ),
            by_group,
            groups,
        )

    @default("server_token_scopes")
    def _default_server_token_scopes(self) -> Any:
        return start_limiter.rate_limited_scopes

    # One for the whole hub, made from the settings of the first spawner that needs it.
    _connection: ClassVar[SlurmConnection | None] = None

    @property
    def slurm(self) -> SlurmConnection:
        """The hub's way to Slurm."""
        if SpawnerTraits._connection is None:
            client = SlurmClient(
                bin_dir=self.slurm_bin_dir,
                slurm_conf=self.slurm_conf,
                launcher_cmd=tuple(self.launcher_cmd),
                time_limit=self.command_timeout,
                operator=self.slurm_operator,
                launches=ConcurrencyLimiter(self.launches_at_once),
            )
            pace = PollIntervals(
                busy=self.query_interval,
                waiting=max(self.query_interval, self.quiet_interval / 2),
                quiet=self.quiet_interval,
            )
            SpawnerTraits._connection = SlurmConnection.through(
                client, pace, self.cluster_interval, self._shape
            )
        return SpawnerTraits._connection

    @property
    def _shape(self) -> ResourceShape:
        return ResourceShape(
            self.cores_per_gpu,
            self.memory_mb_per_gpu,
            self.cores_without_gpu,
            self.memory_mb_without_gpu,
        )

    @property
    def _defaults(self) -> Defaults:
        time = timedelta(hours=self.default_hours)
        if self.req_runtime:
            time = duration(self.req_runtime)
        partition = self.default_partition or self.req_partition or None
        return Defaults(self.default_gpus, time, partition)

    @property
    def _site_policy(self) -> SitePolicy:
        return SitePolicy(
            self._shape,
            self._defaults,
            self._allowance,
            self.session_images,
            self.image_check,
            tuple(profile.read(table) for table in self.profiles.values()),
            self.offer_accounts,
        )

    @property
    def _extension_rules(self) -> ExtensionRules:
        most = self.max_extensions if self.slurm_operator else 0
        return ExtensionRules(timedelta(hours=self.extension_hours), most)

    @property
    def _longest_delay(self) -> timedelta:
        """How much later than its submission and its own time a session can end."""
        extensions = timedelta(hours=self.extension_hours) * self.max_extensions
        return timedelta(seconds=self.queue_timeout) + extensions


def _check_limits(where: str, table: object) -> None:
    try:
        allowance.read(table)
    except ValueError as error:
        raise TraitError(f"{where}: {error}") from error
