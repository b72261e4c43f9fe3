"""Settings of sessions, and of the kernels in them."""

from datetime import timedelta
from typing import Annotated, Literal, Self, get_args

from pydantic import Strict, model_validator
from pydantic_core import PydanticCustomError

from dsportal.session_schema import SessionInput
from dsportal.settings.table import Table, setting
from dsportal.values import (
    AbsolutePath,
    Environment,
    FolderNotes,
    Folders,
    Minutes,
    ModuleNames,
    Name,
    NamedUsersFolders,
    OptionalPath,
    PartitionName,
    Paths,
    Program,
    SharesFolder,
    Umask,
    UsersFolder,
)
from jupyterhub_gpu_slurm.options.policy import Defaults
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.session.deadline import ExtensionRules, StartLimits

ExtensionName = Literal[
    "git",
    "lsp",
    "execute_time",
    "code_formatter",
    "debugger",
    "search",
    "csv",
    "toc",
    "parquet",
    "download",
    "notify",
]


class Session(Table):
    """Sessions: resources, time limits, software and folders."""

    python: AbsolutePath = setting(
        ..., "The Python interpreter of the session's environment, on the compute nodes."
    )
    cores_per_gpu: int = setting(
        ResourceShape.cores_per_gpu, "The CPU cores that come with each GPU.", unit="cores", ge=1
    )
    memory_mb_per_gpu: int = setting(
        ResourceShape.memory_mb_per_gpu, "The memory that comes with each GPU.", unit="MiB", ge=256
    )
    cores_without_gpu: int = setting(
        ResourceShape.cores_without_gpu,
        "The CPU cores of a session without GPUs.",
        unit="cores",
        ge=1,
    )
    memory_mb_without_gpu: int = setting(
        ResourceShape.memory_mb_without_gpu,
        "The memory of a session without GPUs.",
        unit="MiB",
        ge=256,
    )
    default_gpus: int = setting(
        Defaults.gpus, "The number of GPUs that the form proposes.", unit="GPUs", ge=0
    )
    default_hours: float = setting(
        Defaults.time / timedelta(hours=1),
        "The session time that the form proposes.",
        unit="hours",
        gt=0,
        le=8760,
    )
    default_partition: PartitionName = setting(
        "", "The partition that the form proposes; empty for the cluster's default."
    )
    extension_hours: float = setting(
        ExtensionRules.most_at_once / timedelta(hours=1),
        "The longest time by which a running session can be extended at once.",
        unit="hours",
        ge=0.02,
        le=8760,
    )
    max_extensions: int = setting(
        ExtensionRules.most_times,
        "How often a session can be extended; 0 for never. The limits of the partition and of "
        "groups still hold for the whole session.",
        ge=0,
        le=1000,
    )
    warning_minutes: Minutes = setting(
        (30, 10, 2), "How long before its end a session warns its user.", unit="minutes"
    )
    start_timeout_seconds: int = setting(
        round(StartLimits.launch),
        "How long a session may take to be ready, from the start of its job on a node.",
        unit="seconds",
        ge=10,
        le=3600,
    )
    queue_timeout_hours: float = setting(
        StartLimits.queue / 3600,
        "How long a session may wait for free GPUs before the hub gives up.",
        unit="hours",
        gt=0,
        le=720,
    )
    tensorboard_python: OptionalPath = setting(
        "", "The interpreter of TensorBoard's environment; empty for no TensorBoard."
    )
    tensorboards: int = setting(
        SessionInput.tensorboards,
        "How many TensorBoards a session may run at once, at about 100 MB each. Opening one more "
        "stops the one that has been unused for longest.",
        ge=1,
        le=50,
    )
    tensorboard_idle_minutes: int = setting(
        SessionInput.tensorboard_idle_minutes,
        "The time after which a TensorBoard that nobody looks at stops; it starts again when "
        "somebody opens it. 0 for never.",
        unit="minutes",
        ge=0,
        le=10_000,
    )
    umask: Umask = setting(
        "",
        "The permissions that others do not get on files that users save, or write in terminals "
        "and kernels: 0022 lets others read, 0002 lets the group write, 0077 keeps everything "
        "private. Empty for the umask of a login on the node: UMASK in /etc/login.defs.",
    )
    extensions: Annotated[tuple[ExtensionName, ...], Strict(False)] = setting(
        get_args(ExtensionName),
        "Additions to JupyterLab: a Git panel, completion and hints by a language server, the "
        "execution time of each cell, a formatter, a debugger, a search in all files of a folder, "
        "CSV and Parquet files as tables, a table of contents, downloads of folders as ZIP files, "
        "and browser notifications. Leave one out to turn it off for everybody.",
    )
    jupyter_path: Paths = setting((), "The folders with kernels for all users (JUPYTER_PATH).")
    folders: Folders = setting(
        {}, "Links to make in a user's home: a name, and the folder it leads to."
    )
    folder_notes: FolderNotes = setting(
        {},
        "What each of the `folders` is for, in one sentence, for the welcome in JupyterLab; a "
        "folder without a note is shown with its path.",
    )
    mounts: Paths = setting(
        (),
        "The mount points of file servers on the compute nodes, such as /mnt/isilon. A session "
        "tells its user if one is missing or does not respond, and works on without it.",
    )
    templates: str = setting(
        "templates",
        "The one of the `folders` that holds the notebook templates, for **New from Template**; "
        "empty for none.",
    )
    modules_init: OptionalPath = setting(
        "",
        "The file that defines `module` in bash, on the compute nodes; empty if there are no "
        "environment modules.",
    )
    module_paths: Paths = setting(
        (), "The folders with modulefiles (MODULEPATH) that a session starts with."
    )

    environments_folders: NamedUsersFolders = setting(
        {"home": "~/environments"},
        "Where users may put their own environments (`portal env`, **My Environments**): names "
        "for users to choose from, each with its folder. The first is the default, and has the "
        "modulefiles of all environments. `~` is the home, `{user}` the user's name: "
        "`/mnt/isilon/users/{user}/environments`. An environment takes from 20 MB to gigabytes. "
        "An empty text turns a folder off; without any folder, users cannot have environments of "
        "their own.",
    )

    environments_conda: OptionalPath = setting(
        "",
        "The program on the compute nodes that makes users' environments from conda packages: "
        "micromamba, mamba or conda. Empty: **My Environments** does not offer it, and `portal "
        "env create --conda` uses the one that the user has loaded.",
    )

    mlflow_folder: UsersFolder = setting(
        "",
        "Where each user's MLflow runs are stored: kernels, terminals and jobs submitted from a "
        "session get it as `MLFLOW_TRACKING_URI`, unless the user sets another. `~` is the home, "
        "`{user}` the user's name. Empty: the variable is not set.",
    )

    shares_folder: SharesFolder = setting(
        "",
        "Where the notebooks that users share are stored: on storage that all nodes see, below a "
        "folder that the user owns and that others may traverse, such as "
        "`/mnt/isilon/users/{user}/shared`; `{user}` is the user's name. Sharing with individual "
        "users needs POSIX ACLs on this storage. Empty for no sharing.",
    )

    ssh: bool = setting(
        True,
        "Whether users may connect to their sessions with SSH, for VS Code, scp and rsync. It "
        "needs OpenSSH's program `sshd` on the compute nodes, but no service and no open port.",
    )

    @model_validator(mode="after")
    def _templates_are_a_folder(self) -> Self:
        is_chosen = "templates" in self.model_fields_set and self.templates
        if is_chosen and self.templates not in self.folders:
            raise PydanticCustomError(
                "rule", "templates is {name}, which folders does not have", {"name": self.templates}
            )
        return self

    @model_validator(mode="after")
    def _notes_are_of_folders(self) -> Self:
        for name in self.folder_notes:
            if name not in self.folders:
                raise PydanticCustomError(
                    "rule",
                    "folder_notes has {name}, which folders does not have",
                    {"name": name},
                )
        return self


class KernelSettings(Table):
    """A kernel for everybody, which runs inside environment modules."""

    display_name: Name = setting(..., "The kernel's name in the launcher and in notebooks.")
    modules: ModuleNames = setting(
        (), "The modules to load before the kernel starts, in this order."
    )
    interpreter: Program = setting(
        "python",
        "The program that runs the kernel; a name without a path is looked up after the modules "
        "are loaded.",
    )
    language: Literal["python", "R"] = setting(
        "python",
        "The kind of kernel that the interpreter runs: ipykernel for `python` (Python 2 too), "
        "IRkernel for `R`.",
    )
    environment: Environment = setting({}, "Additional environment variables and their values.")
