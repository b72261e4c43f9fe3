"""The spawner's options in JupyterHub's configuration, and what is made of them."""

from collections import abc
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
from jupyterhub_gpu_slurm.defaults import IdleDefaults, SlurmDefaults
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
    """Options of the spawner: ``c.GpuSlurmSpawner.NAME`` in the hub's configuration."""

    slurm_conf = Unicode(
        SlurmDefaults.config_file,
        help="Absolute path of Slurm's configuration file, for the hub's own commands.",
    ).tag(config=True, hub_wide=True)
    slurm_bin_dir = Unicode(
        SlurmDefaults.bin_dir,
        help="Absolute path of the folder with squeue, sinfo and scontrol; PATH is not searched.",
    ).tag(config=True, hub_wide=True)
    launcher_cmd = List(
        Unicode(),
        list(launcher_cmd()),
        help="""
        The command, as a list, that runs the launcher as a user; ``{username}`` is replaced with
        the user's name. The launcher is the only program that sudo has to allow.
        """,
    ).tag(config=True, hub_wide=True)
    hub_mark = Unicode(
        "portal",
        help="""
        The name of this hub, with which the names of its jobs start: letters, digits and hyphens.
        Each hub of a cluster needs its own.
        """,
    ).tag(config=True, hub_wide=True)
    query_interval = Float(
        SlurmDefaults.query_interval_seconds,
        help="""
        Seconds between two calls of squeue while a session is starting or stopping. One call asks
        for all sessions of the hub. For one that listens already it is a tenth of that.
        """,
    ).tag(config=True, hub_wide=True)
    quiet_interval = Float(
        SlurmDefaults.quiet_interval_seconds,
        help="Seconds between two calls of squeue while sessions are only running.",
    ).tag(config=True, hub_wide=True)
    cluster_interval = Float(
        SlurmDefaults.cluster_interval_seconds,
        help="""
        Seconds between two queries of the nodes' free resources, for all open forms together.
        Slurm is not asked while no form is open.
        """,
    ).tag(config=True, hub_wide=True)
    launches_at_once = Integer(
        SlurmDefaults.launches_at_once,
        min=1,
        help="""
        The maximum number of launcher processes that start at the same time, so that many starts at
        once do not slow the hub's pages down. A launcher that takes longer than two seconds,
        because it waits for Slurm, is no longer counted.
        """,
    ).tag(config=True, hub_wide=True)
    command_timeout = Float(
        SlurmDefaults.command_timeout_seconds,
        help="Seconds after which a Slurm command that has not answered is stopped.",
    ).tag(config=True, hub_wide=True)
    cores_per_gpu = Integer(
        ResourceShape.cores_per_gpu, min=1, help="CPU cores that a session gets for each GPU."
    ).tag(config=True)
    memory_mb_per_gpu = Integer(
        ResourceShape.memory_mb_per_gpu,
        min=1,
        help="Memory in MiB that a session gets for each GPU.",
    ).tag(config=True)
    cores_without_gpu = Integer(
        ResourceShape.cores_without_gpu, min=1, help="CPU cores of a session without GPUs."
    ).tag(config=True)
    memory_mb_without_gpu = Integer(
        ResourceShape.memory_mb_without_gpu, min=1, help="Memory in MiB of a session without GPUs."
    ).tag(config=True)
    default_gpus = Integer(
        Defaults.gpus, help="Number of GPUs of a session if the user does not choose one."
    ).tag(config=True)
    default_hours = Float(
        Defaults.time / timedelta(hours=1),
        help="""
        Hours that a session lasts if the user does not choose; the partition's limit if that is
        shorter.
        """,
    ).tag(config=True)
    default_partition = Unicode(
        "",
        help="""
        The partition of a session if the user does not choose one. If empty, the cluster's default
        partition.
        """,
    ).tag(config=True)
    default_limits = Dict(
        help="""
        Limits that apply unless ``group_limits`` sets the same key for one of the user's groups.
        All keys are optional:
        ``max_gpus_per_session``, ``max_gpus`` (in all sessions of a user together), ``max_hours``,
        ``max_sessions`` (at the same time), ``partitions`` (a list), ``account``, ``qos``,
        ``reservation``. What users may choose in the form: ``reservations`` and ``constraints``
        (node features), both lists.
        """,
    ).tag(config=True)
    group_limits = Dict(
        help="""
        The limits of a group's members, such as ``{"students": {"max_gpus": 1}}``, with the keys of
        ``default_limits``. Groups are those of JupyterHub and of the operating system. A user in
        several groups gets the highest number of each limit and the entries of all their lists;
        account, QOS and reservation are those of the user's first group in this order.
        """,
    ).tag(config=True)
    req_qos = Unicode(
        "", help="The QOS of a session's job if ``default_limits`` and ``group_limits`` set none."
    ).tag(config=True)
    req_reservation = Unicode(
        "",
        help="""
        The reservation of a session's job if ``default_limits`` and ``group_limits`` set none.
        """,
    ).tag(config=True)
    offer_accounts = Bool(
        SlurmDefaults.offer_accounts,
        help="""
        Whether the form lets users choose among their accounts and QOS in Slurm's accounting, if
        they have several and the limits set none.
        """,
    ).tag(config=True)
    profiles = Dict(
        help="""
        Named sizes that fill in the form: ``{"small": {"title": "Small", "description": "To try
        things", "gpus": 1, "hours": 2}}``. Other keys are the options of a session: ``gpu_type``,
        ``partition``, ``image``, ``account``, ``qos``, ``reservation``, ``constraint``. Users see
        only the sizes that their limits allow.
        """,
    ).tag(config=True)
    launch_timeout = Float(
        StartLimits.launch,
        help="""
        Seconds that a session's server may take to start listening after Slurm has started its job.
        Time in the queue is not included; ``start_timeout`` covers both.
        """,
    ).tag(config=True)
    queue_timeout = Float(
        StartLimits.queue,
        help="""
        Seconds after which a session that is still in the queue is cancelled. Must be less than
        ``start_timeout``.
        """,
    ).tag(config=True)
    end_timeout = Float(
        60.0,
        help="""
        Seconds to wait until a finished job has left its node; only then does Slurm report how the
        job ended. Slurm itself kills processes that have not ended after its ``KillWait``.
        """,
    ).tag(config=True, hub_wide=True)
    slurm_operator = Unicode(
        "",
        help="""
        The Unix account with which the launcher extends sessions, ends sessions of deleted
        accounts, and sees jobs if Slurm's ``PrivateData`` hides them: Slurm's ``SlurmUser``, or an
        operator in Slurm's accounting. If empty, sessions cannot be extended.
        """,
    ).tag(config=True, hub_wide=True)
    extension_hours = Float(
        ExtensionRules.most_at_once / timedelta(hours=1),
        help="The maximum number of hours that one extension adds to a running session.",
    ).tag(config=True)
    max_extensions = Integer(
        ExtensionRules.most_times,
        help="How many times a session can be extended. With 0, sessions cannot be extended.",
    ).tag(config=True)
    idle_minutes = Float(
        0.0,
        min=0.0,
        help="""
        Minutes after which an unused session ends; 0 means never. Sessions report their use to the
        hub, and jupyterhub-idle-culler with the hook ``dsportal.culler.decision`` ends them.
        """,
    ).tag(config=True)
    group_idle_minutes = Dict(
        value_trait=Float(min=0.0),
        help="""
        ``idle_minutes`` for members of groups, such as ``{"students": 30}``. For a user in several
        groups the most generous value counts.
        """,
    ).tag(config=True)
    idle_warning_minutes = Float(
        IdleDefaults.warning_minutes,
        min=0.0,
        help="Minutes before an unused session ends at which its user is warned.",
    ).tag(config=True)
    session_python = Unicode(
        help="""
        Absolute path of the Python interpreter on the compute nodes that has ``dsportal.session``.
        """
    ).tag(config=True)
    session_input = Dict(
        help="""
        What ``dsportal.session`` is given in addition to environment variables: folders, kernels
        and tools.
        """
    ).tag(config=True)
    session_images = Dict(
        help="""
        The container images in which the form lets users run a session: each name with what
        ``dsportal.session`` gets as ``image``, and with a ``title``.
        """,
    ).tag(config=True)
    image_check = Callable(
        None,
        allow_none=True,
        help="""
        A function that is called in a thread with an image's path before a session in it is
        submitted. It returns whether the image contains jupyterhub-singleuser, or ``None`` if that
        cannot be determined.
        """,
    ).tag(config=True)

    session_observer = Callable(
        None,
        allow_none=True,
        help="""
        A function that is called with a ``jupyterhub_gpu_slurm.session.observation.SessionNews``
        each time a session's job is seen running, and once when it has ended. It runs on the hub's
        event loop and must return at once. Its exceptions are logged and have no other effect.
        """,
    ).tag(config=True)
    idle_gpu_minutes = Float(
        IdleDefaults.gpu_minutes,
        help="Minutes without use after which the metrics report a session's GPUs as idle.",
    ).tag(config=True)

    @default("start_timeout")
    def _default_start_timeout(self) -> int:
        # A job may wait in the queue for long; the user sees why, and can cancel.
        return 13 * 3600

    @validate("default_limits")
    def _check_default_limits(self, proposal: Any) -> Any:
        _check("default_limits", allowance.read, proposal.value)
        return proposal.value

    @validate("req_account", "req_qos", "req_reservation")
    def _check_word(self, proposal: Any) -> Any:
        name = proposal.trait.name
        if proposal.value:
            _check(name, allowance.read, {name.removeprefix("req_"): proposal.value})
        return proposal.value

    @validate("req_runtime", "req_options")
    def _check_text(self, proposal: Any) -> Any:
        name = proposal.trait.name
        if proposal.value:
            read = {"req_runtime": duration, "req_options": site_options}[name]
            _check(name, read, proposal.value)
        return proposal.value

    @validate("group_limits")
    def _check_group_limits(self, proposal: Any) -> Any:
        for name, table in proposal.value.items():
            _check(f"group_limits[{name!r}]", allowance.read, table)
        return proposal.value

    @validate("profiles")
    def _check_profiles(self, proposal: Any) -> Any:
        for name, table in proposal.value.items():
            _check(f"profiles[{name!r}]", profile.read, table)
        return proposal.value

    def _allowance(self, groups: abc.Collection[str]) -> Allowance:
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
                hurried=self.query_interval / 10,
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


def _check(where: str, read: abc.Callable[[Any], object], value: object) -> None:
    try:
        read(value)
    except ValueError as error:
        raise TraitError(f"{where}: {error}") from error
