"""The portal's settings: each key with its type, unit, default and one sentence.

``portal.toml`` is the product's surface; ``docs/reference/settings.md`` is made from these tables.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from portal.values import (
    AbsolutePath,
    AttributeName,
    BindUrl,
    DatabaseUrl,
    DirectoryUrls,
    DistinguishedName,
    Environment,
    Folders,
    HttpUrl,
    KernelTables,
    Mark,
    Minutes,
    ModuleNames,
    Name,
    OptionalPath,
    PartitionName,
    Paths,
    Program,
    SlurmName,
    SlurmNames,
    Tables,
    Texts,
    UnixName,
    host_of,
)


def setting(
    default: Any, sentence: str, *, unit: str = "", secret: bool = False, **rules: Any
) -> Any:
    """Describe one key: its default (``...`` for none), what it is for, its unit and its range.

    The value of a ``secret`` key is never shown.
    """
    return Field(
        default,
        description=sentence,
        json_schema_extra={"unit": unit, "secret": secret},
        repr=not secret,
        **rules,
    )


class Table(BaseModel):
    """A table of the file: unknown keys are refused, types are not converted, nothing changes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True
    )


class Hub(Table):
    """Where the hub and the proxy listen, and where the hub keeps its state."""

    name: Mark = setting(
        "portal",
        "Marks this hub's jobs in Slurm; two hubs on one cluster need different ones.",
    )
    public_url: BindUrl = setting(
        "http://0.0.0.0:8000",  # the portal is for other machines
        "Where the proxy listens for browsers; 0.0.0.0 stands for all addresses.",
    )
    api_url: HttpUrl = setting(
        "http://127.0.0.1:8081",
        "Where the hub listens, as the proxy and the sessions on the compute nodes reach it.",
    )
    proxy_api_url: HttpUrl = setting(
        "http://127.0.0.1:8001", "Where the proxy takes the hub's instructions."
    )
    state_dir: AbsolutePath = setting(
        "/var/lib/data-scientist-portal/hub",
        "The folder with the hub's database and its cookie secret; the hub's user owns it.",
    )
    database_url: DatabaseUrl = setting(
        "", "The hub's database; empty for an SQLite file in `state_dir`.", secret=True
    )
    max_named_servers: int = setting(
        0,
        "How many named servers a user may have besides the unnamed one, for several sessions at "
        "once; 0 for none.",
        ge=0,
        le=100,
    )

    @model_validator(mode="after")
    def _no_two_listen_at_one_place(self) -> Self:
        ports = [urlsplit(url).port for url in (self.public_url, self.api_url, self.proxy_api_url)]
        hosts = [host_of(self.api_url), host_of(self.proxy_api_url)]
        if ports[0] in ports[1:] or (ports[1] == ports[2] and hosts[0] == hosts[1]):
            raise PydanticCustomError(
                "rule", "public_url, api_url and proxy_api_url need different ports"
            )
        return self


class Ldap(Table):
    """The directory that knows the users and their groups."""

    servers: DirectoryUrls = setting(
        (), "The directory's servers; the first that answers is asked, the others stand by."
    )
    start_tls: bool = setting(
        False, "Encrypts ldap:// connections before the password is sent; ldaps:// always is."
    )
    ca_file: OptionalPath = setting(
        "", "The authorities (PEM) that sign the servers' certificates; empty for the system's."
    )
    user_base: DistinguishedName = setting("", "The branch of the directory with the users.")
    user_attribute: AttributeName = setting(
        "uid", "The attribute of a user that holds the Unix name."
    )
    group_base: DistinguishedName = setting("", "The branch of the directory with the groups.")
    group_attribute: AttributeName = setting("cn", "The attribute of a group that holds its name.")
    bind_dn: DistinguishedName = setting(
        "",
        "The account that looks users up; empty where a user's entry is "
        "`user_attribute=NAME,user_base` itself.",
    )
    bind_password_file: OptionalPath = setting(
        "", "The file with the password of `bind_dn`, readable by the hub's user only."
    )
    connect_timeout_seconds: int = setting(
        3, "How long one server may take to accept a connection.", unit="seconds", ge=1, le=60
    )
    receive_timeout_seconds: int = setting(
        5, "How long one server may take for one answer.", unit="seconds", ge=1, le=60
    )
    login_timeout_seconds: int = setting(
        20, "How long one login may take in all, over all servers.", unit="seconds", ge=1, le=300
    )

    @model_validator(mode="after")
    def _account_has_a_password(self) -> Self:
        if bool(self.bind_dn) != bool(self.bind_password_file):
            raise PydanticCustomError("rule", "bind_dn and bind_password_file go together")
        return self


class Authentication(Table):
    """Who may log in, and who is an admin."""

    method: Literal["ldap", "pam"] = setting(
        "ldap", "Asks the directory (`ldap`) or the machine's own accounts (`pam`)."
    )
    allowed_groups: Texts = setting((), "The groups whose members may log in.")
    admin_groups: Texts = setting((), "The groups whose members are admins; they may log in too.")
    contact: Name = setting(
        "the administrators of the portal", "Whom a user who may not log in is told to ask."
    )
    ldap: Ldap = Ldap()

    @model_validator(mode="after")
    def _somebody_can_log_in(self) -> Self:
        if not (self.allowed_groups or self.admin_groups):
            raise PydanticCustomError(
                "rule", "allowed_groups or admin_groups must name a group, or nobody can log in"
            )
        return self

    @model_validator(mode="after")
    def _directory_is_known(self) -> Self:
        needed = ("servers", "user_base", "group_base")
        missing = [key for key in needed if not getattr(self.ldap, key)]
        if self.method == "ldap" and missing:
            keys = ", ".join(f"authentication.ldap.{key}" for key in missing)
            raise PydanticCustomError("rule", 'method = "ldap" needs {keys}', {"keys": keys})
        return self


class Slurm(Table):
    """How the hub reaches Slurm."""

    config_file: AbsolutePath = setting("/etc/slurm/slurm.conf", "Slurm's configuration.")
    bin_dir: AbsolutePath = setting("/usr/bin", "The folder with squeue, sinfo and scontrol.")
    launcher: AbsolutePath = setting(
        "/opt/data-scientist-portal/libexec/portal/slurm-launcher",
        "The one program that sudo lets the hub run as a user.",
    )
    sudo: AbsolutePath = setting("/usr/bin/sudo", "The sudo program.")
    operator: UnixName = setting(
        "",
        "The account as which the launcher raises the time limits of running sessions: Slurm's "
        "SlurmUser, or an operator in Slurm's accounting; empty: sessions are not extended.",
    )
    query_interval_seconds: float = setting(
        1.0,
        "The time between two questions to squeue, for all sessions together, while one starts.",
        unit="seconds",
        ge=0.1,
        le=60,
    )
    quiet_interval_seconds: float = setting(
        10.0,
        "The time between two questions to squeue while sessions only run.",
        unit="seconds",
        ge=1,
        le=15,
    )
    cluster_interval_seconds: float = setting(
        10.0,
        "The time between two looks at what the nodes have free, for all open forms together.",
        unit="seconds",
        ge=1,
        le=600,
    )
    reconcile_interval_seconds: float = setting(
        300.0,
        "The time between two looks for jobs of this hub that belong to no server.",
        unit="seconds",
        ge=1,
        le=86400,
    )
    launches_at_once: int = setting(
        4,
        "How many starts and stops may be handed to Slurm at one moment; others wait a little.",
        ge=1,
        le=100,
    )
    command_timeout_seconds: float = setting(
        20.0, "How long a program of Slurm may take to answer.", unit="seconds", ge=1, le=600
    )


class Session(Table):
    """What a session gets, and what it runs."""

    python: AbsolutePath = setting(
        ..., "The interpreter of the session's environment, on the compute nodes."
    )
    cores_per_gpu: int = setting(8, "The CPU cores that come with each GPU.", unit="cores", ge=1)
    memory_mb_per_gpu: int = setting(
        49152, "The memory that comes with each GPU.", unit="MiB", ge=256
    )
    cores_without_gpu: int = setting(
        2, "The CPU cores of a session without GPUs.", unit="cores", ge=1
    )
    memory_mb_without_gpu: int = setting(
        12288, "The memory of a session without GPUs.", unit="MiB", ge=256
    )
    default_gpus: int = setting(1, "The GPUs that the form proposes.", unit="GPUs", ge=0)
    default_hours: float = setting(
        8.0, "The session time that the form proposes.", unit="hours", gt=0, le=8760
    )
    default_partition: PartitionName = setting(
        "", "The partition that the form proposes; empty for the cluster's default."
    )
    extension_hours: float = setting(
        4.0,
        "The most by which a running session can be extended at once.",
        unit="hours",
        ge=0.02,
        le=8760,
    )
    max_extensions: int = setting(
        3,
        "How often one session can be extended; 0 for never. The limits of partition and groups "
        "hold for the whole session.",
        ge=0,
        le=1000,
    )
    warning_minutes: Minutes = setting(
        (30, 10, 2), "How long before its end a session warns of it.", unit="minutes"
    )
    start_timeout_seconds: int = setting(
        300,
        "How long a session may take from its job's start on a node until it can be used.",
        unit="seconds",
        ge=10,
        le=3600,
    )
    queue_timeout_hours: float = setting(
        12.0,
        "How long a session may wait for free GPUs before the hub gives it up.",
        unit="hours",
        gt=0,
        le=720,
    )
    tensorboard_python: OptionalPath = setting(
        "", "The interpreter of TensorBoard's environment; empty for no TensorBoard."
    )
    jupyter_path: Paths = setting((), "The folders with kernels for all users (JUPYTER_PATH).")
    folders: Folders = setting(
        {}, "The links made in a user's home: a name, and the folder it leads to."
    )
    templates: str = setting(
        "templates",
        "Which of the `folders` has the notebook templates, for **New from Template**; empty for "
        "none.",
    )
    modules_init: OptionalPath = setting(
        "",
        "The file that defines `module` in bash, on the compute nodes; empty where there are no "
        "environment modules.",
    )
    module_paths: Paths = setting(
        (), "The folders with modulefiles (MODULEPATH) that sessions begin with."
    )

    @model_validator(mode="after")
    def _templates_are_a_folder(self) -> Self:
        is_chosen = "templates" in self.model_fields_set and self.templates
        if is_chosen and self.templates not in self.folders:
            raise PydanticCustomError(
                "rule", "templates is {name}, which folders does not have", {"name": self.templates}
            )
        return self


class Kernel(Table):
    """A kernel for everybody, which runs inside environment modules."""

    display_name: Name = setting(..., "What the launcher and the notebook show.")
    modules: ModuleNames = setting((), "What is loaded before the kernel starts, in this order.")
    interpreter: Program = setting(
        "python", "The program that runs the kernel: a name is looked for once all is loaded."
    )
    language: Literal["python", "R"] = setting(
        "python",
        "How the interpreter is told to be a kernel: with ipykernel (Python 2 too) or IRkernel.",
    )
    environment: Environment = setting({}, "Variables that are set besides, and their values.")


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
        None, "The account that Slurm charges the sessions' jobs to."
    )
    qos: SlurmName | None = setting(None, "The QOS that the sessions' jobs ask for.")


class Limits(Table):
    """What users may have."""

    default: UserLimits = UserLimits()
    groups: Tables[UserLimits] = setting(
        {}, "What the members of the group NAME may have; NAME is a Unix or an LDAP group."
    )


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
        10.0,
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


class Settings(Table):
    """All of ``portal.toml``."""

    hub: Hub = Hub()
    authentication: Authentication
    slurm: Slurm = Slurm()
    session: Session
    kernels: KernelTables[Kernel] = setting(
        {},
        "The kernel NAME, besides Python 3. Notebooks remember this name.",
    )
    # Made anew, because pydantic copies a default and a read-only mapping cannot be copied.
    limits: Limits = Field(default_factory=Limits)
    idle: Idle = Field(default_factory=Idle)

    @model_validator(mode="after")
    def _modules_can_be_loaded(self) -> Self:
        with_modules = [name for name, kernel in self.kernels.items() if kernel.modules]
        if with_modules and not self.session.modules_init:
            raise PydanticCustomError(
                "rule",
                "the modules of kernel {name} need session.modules_init",
                {"name": with_modules[0]},
            )
        return self


def table_at(keys: list[str]) -> type[Table] | None:
    """Give the table's model at a path of keys, None where there is none."""
    if not keys:
        return Settings
    *outer, last = keys
    if (table := table_at(outer)) is not None:
        return one_table(table.model_fields[last]) if last in table.model_fields else None
    # The table of a name that the site chose, such as a group's.
    parent = table_at(outer[:-1]) if outer else None
    field = parent.model_fields.get(outer[-1]) if parent else None
    return named_tables(field) if field else None


def one_table(field: FieldInfo) -> type[Table] | None:
    """Give the model of a field that is a table."""
    model = field.annotation
    return model if isinstance(model, type) and issubclass(model, Table) else None


def named_tables(field: FieldInfo) -> type[Table] | None:
    """Give the model of a field that holds tables by names that the site chooses."""
    if get_origin(field.annotation) is not Mapping:
        return None
    model = get_args(field.annotation)[1]
    return model if isinstance(model, type) and issubclass(model, Table) else None
