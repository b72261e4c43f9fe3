"""Messages to the user about their own environments."""

NOT_A_NAME = (
    "{name!r} cannot be an environment's name. Use letters, digits and . _ - and begin with a "
    "letter or a digit; 50 characters at most."
)
NOT_A_MODULE = "{name!r} is not the name of a module, such as pytorch/2.13."
NOT_A_PACKAGE = (
    "{text!r} is not something that pip can install, such as einops, 'einops>=0.8' or a file "
    "NAME.whl. pip's options are not accepted: list packages in a file and pass it with -r."
)
NOT_A_FOLDER = (
    "Environments cannot be stored in {folder}: its path may have letters, digits and / . _ + @ - "
    "only. Tell the administrators: session.environments_folders."
)
NO_SUCH_FOLDER = "Environments cannot be stored in {name!r}. Choose one of: {names}."
NOT_YOURS = (
    "You cannot write to {folder}, so your environments cannot be stored in {name}. Choose another "
    "place with --in, or tell the administrators."
)
NO_FOLDER = "{folder} cannot be created: {reason}."
NO_CONDA = (
    "There is no conda, mamba or micromamba here. Load the module that has one, if your site does, "
    "or leave --conda out."
)
CONDA_ALONE = "An environment is built on a module or with conda: leave out --on or --conda."
EXISTS = (
    "There is already an environment {name}, in {folder}. Remove it first, or choose another name."
)
IS_A_MODULE = "There is already a module {name}. Choose another name for the environment."
IS_BUSY = (
    "{name} is being created or removed at the moment. Wait until that is done, then try again."
)
NOT_BEGUN = "This could not be started: {reason}. Try again."
UNKNOWN = "There is no environment {name}."
NO_MODULES = (
    "There are no environment modules here, so there is nothing called {base} to build on. "
    "Leave --on out for an environment of plain Python."
)
NO_PYTHON = "{base} has no Python that can create environments: {said}"
NO_VENV = (
    "Python cannot create environments on this node. Tell the administrators: the package "
    "python3-venv is missing. {said}"
)
PIP_FAILED = (
    "pip could not install {packages}; see its output above. Nothing was kept. If it complains "
    "about versions in {base}: those cannot be changed. Leave --on out for an environment in which "
    "you choose all versions."
)
CONDA_FAILED = "{program} could not install {packages}; see its output above. Nothing was kept."
PIP_FAILED_ALONE = "pip could not install {packages}; see its output above. Nothing was kept."
STOPPED = "Stopped. Nothing of {name} was kept."
NOT_WRITTEN = "{path}: {reason}. Nothing of {name} was kept."
NOT_REMOVED = "{path}: {reason}. It was not removed completely; try again."
OFF = "Your own environments are turned off on this portal."

MAKING = "Creating {name} in {place}"
MAKING_ON = "Creating {name} on {base} in {place}"
INSTALLING = "Installing {packages}"
MADE = (
    "{name} is ready ({size}). In JupyterLab it is a kernel: {title}. "
    "In terminals and jobs: {activate}"
)
MADE_WITH_KERNEL = "ipykernel was installed too, so that it can be a kernel."
REMOVED = "{name} is removed."
REMOVED_HALF = "Removed what was left of {name}, which had not been finished."
NONE = "No environments yet. Create one: portal env create NAME --on MODULE PACKAGE..."
NO_ANSWER = "{name} is left out: {reason}.\n"
USED = "{name}: {used} of {size} used"
USE_UNKNOWN = "{name}: usage not known"
USED_OF_QUOTA = "{name}: {used} of your quota of {size} used"
UNFINISHED = "not finished: remove it, or create it again"
NEWER = "created with a newer release of the portal than this session's"
BASE_GONE = "what it was built on is gone: remove it and create it again"

PLAIN_PYTHON = "plain Python"
CONDA = "conda"
