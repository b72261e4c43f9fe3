"""Messages of TensorBoard's pages without a board. ``name``: a folder as users know it."""

FOLDER_GONE = "The folder is gone"
NO_FOLDER = "No folder for TensorBoard"
ASLEEP = "TensorBoard is paused"
NOT_OPENED = "TensorBoard was not opened"
STOPPED = "This TensorBoard is not running"
STOPPED_BECAUSE = (
    "It was stopped, or belonged to an earlier session. Select its folder in JupyterLab's file "
    "browser to open it again."
)
ALREADY_STOPPED = "This TensorBoard is no longer running."
NO_EVENTS = (
    "There are no event files in this folder or below it. TensorBoard opens here as soon as a "
    "training run has written the first one."
)


def question(name: str) -> str:
    """Ask whoever follows another page's link."""
    return f"Open TensorBoard for {name}?"


def no_curves(name: str) -> str:
    """Say that there is nothing to show yet."""
    return f"No curves in {name} yet"


def no_folder(name: str) -> str:
    """Say that there is none of that name."""
    return f"There is no folder {name}. It may have been moved or deleted."


def dead_link(name: str, target: str) -> str:
    """Say that a link on the way leads nowhere."""
    return f"{name} is a link to {target}, which does not exist."


def outside(name: str) -> str:
    """Refuse what is no path of the file browser."""
    return f"{name!r} is not a folder below your home."


def no_way(name: str, target: str = "") -> str:
    """Say that the user may not get there; ``target`` is the end of a link."""
    return f"You may not open {_with_target(name, target)}."


def unreadable(name: str, target: str = "") -> str:
    """Say that the user may not read it; ``target`` is the end of a link."""
    return f"You may not read {_with_target(name, target)}."


def cannot_be_opened(name: str, reason: str | None) -> str:
    """Say what the system says."""
    return f"{name} cannot be opened: {reason}."


def is_a_file(name: str) -> str:
    """Refuse a file."""
    return f"{name} is a file; TensorBoard shows folders."


def silent_files(name: str) -> str:
    """Say that the file server does not answer."""
    return f"The storage that holds {name} is not responding. Try again later."


def not_started(name: str) -> str:
    """Say that its process ended, or never listened."""
    return (
        f"TensorBoard for {name} did not start. The session's log says why; perhaps the session's "
        "memory is used up."
    )


def too_many(running: int) -> str:
    """Refuse one more."""
    return (
        f"{running} TensorBoard{' is' if running == 1 else 's are'} in use, the most that a "
        "session may have. Stop one in JupyterLab, under Running Terminals and Kernels, or try "
        "again in a minute."
    )


def _with_target(name: str, target: str) -> str:
    return f"{name}, which leads to {target}" if target else name
