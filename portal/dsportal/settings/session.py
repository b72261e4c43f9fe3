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
    """What a session gets, and what it runs."""

    python: AbsolutePath = setting(
        ..., "The interpreter of the session's environment, on the compute nodes."
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
        Defaults.gpus, "The GPUs that the form proposes.", unit="GPUs", ge=0
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
        "The most by which a running session can be extended at once.",
        unit="hours",
        ge=0.02,
        le=8760,
    )
    max_extensions: int = setting(
        ExtensionRules.most_times,
        "How often one session can be extended; 0 for never. The limits of partition and groups "
        "hold for the whole session.",
        ge=0,
        le=1000,
    )
    warning_minutes: Minutes = setting(
        (30, 10, 2), "How long before its end a session warns of it.", unit="minutes"
    )
    start_timeout_seconds: int = setting(
        round(StartLimits.launch),
        "How long a session may take from its job's start on a node until it can be used.",
        unit="seconds",
        ge=10,
        le=3600,
    )
    queue_timeout_hours: float = setting(
        StartLimits.queue / 3600,
        "How long a session may wait for free GPUs before the hub gives it up.",
        unit="hours",
        gt=0,
        le=720,
    )
    tensorboard_python: OptionalPath = setting(
        "", "The interpreter of TensorBoard's environment; empty for no TensorBoard."
    )
    tensorboards: int = setting(
        SessionInput.tensorboards,
        "How many TensorBoards one session may run at once, some 100 MB each. For one more, that "
        "which was unused for longest gives way.",
        ge=1,
        le=50,
    )
    tensorboard_idle_minutes: int = setting(
        SessionInput.tensorboard_idle_minutes,
        "When a TensorBoard that nobody looks at ends; it starts again when somebody does. "
        "0 for never.",
        unit="minutes",
        ge=0,
        le=10_000,
    )
    umask: Umask = setting(
        "",
        "Which rights others do not get to what users write in terminals and kernels, or save: "
        "0022 lets them read, 0002 lets the group write, 0077 keeps everything to the user. Empty "
        "for what a login on the node gives: UMASK in /etc/login.defs.",
    )
    extensions: Annotated[tuple[ExtensionName, ...], Strict(False)] = setting(
        get_args(ExtensionName),
        "What JupyterLab has besides: a Git panel, completion and hints by a language server, "
        "how long each cell took, a formatter, a debugger, a search in all files of a folder, CSV "
        "and Parquet files as tables, a table of contents, folders as ZIP files, and notifications "
        "of the browser's. Leave one out to turn it off for everybody.",
    )
    jupyter_path: Paths = setting((), "The folders with kernels for all users (JUPYTER_PATH).")
    folders: Folders = setting(
        {}, "The links made in a user's home: a name, and the folder it leads to."
    )
    folder_notes: FolderNotes = setting(
        {},
        "What each of the `folders` is for, in a sentence, for the welcome in JupyterLab; a folder "
        "without one is shown with the path that it leads to.",
    )
    mounts: Paths = setting(
        (),
        "What the compute nodes mount from file servers, such as /mnt/isilon. A session says which "
        "of them is missing or does not answer, and goes on without it.",
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

    environments_folders: NamedUsersFolders = setting(
        {"home": "~/environments"},
        "Where users' own environments may lie (`portal env`, **My Environments**): names that "
        "users choose from, and the folders that they stand for. The first is taken unless another "
        "is chosen, and has the modulefiles of all. `~` is the home, `{user}` the user's name: "
        "`/mnt/isilon/users/{user}/environments`. Each environment has some 20 MB to gigabytes. An "
        "empty text leaves a folder out; without any, users have no environments of their own.",
    )

    environments_conda: OptionalPath = setting(
        "",
        "The program of the compute nodes with which users' environments may be made of conda's "
        "packages: micromamba, mamba or conda. Empty: **My Environments** does not offer it, and "
        "`portal env create --conda` takes what a user has loaded.",
    )

    mlflow_folder: UsersFolder = setting(
        "",
        "Where each user's runs are kept with MLflow: kernels, terminals and jobs submitted from a "
        "session get it as `MLFLOW_TRACKING_URI`, unless the user sets another. `~` is the home, "
        "`{user}` the user's name. Empty: MLflow is told nothing.",
    )

    shares_folder: SharesFolder = setting(
        "",
        "Where the notebooks lie that users share: on storage that all nodes see, below a folder "
        "that is the user's own and that others may pass through, such as "
        "`/mnt/isilon/users/{user}/shared`; `{user}` is the user's name. To share with single "
        "people the storage must have POSIX ACLs. Empty for no sharing.",
    )

    ssh: bool = setting(
        True,
        "Whether users may come into their sessions with SSH, for VS Code, scp and rsync. It needs "
        "the program `sshd` of OpenSSH on the compute nodes; no service, and no port.",
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
