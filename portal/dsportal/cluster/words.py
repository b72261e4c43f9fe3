"""Messages of the cluster page about what it cannot show or do; its templates have the others."""

NOT_LOGGED_IN = "Log in to the portal, or send a token that may access this service."
NOT_ALLOWED = "This login or token may not access the cluster page."
OWN_IS_TRUE_OR_FALSE = "own must be true or false."
ADMINS_ONLY = "Only the portal's admins may see or do this."
SLURM_SILENT = "Slurm is not responding at the moment; these are its last figures."
JOBS_HIDDEN = "Slurm hides users' jobs from this page; the panel in JupyterLab shows your own."
SESSIONS_OLD = "The hub is not responding at the moment; this list may be out of date."
NO_SUCH_SESSION = "The hub does not know this session, or this token may not stop it."
NOT_STOPPED = "The hub did not stop the session. Reload the page and try again."
HUB_SILENT = "The hub is not responding; try again in a moment."
SESSIONS_ALONE = "Slurm job history is unavailable; these hours are of sessions only."
NO_FILE = "Slurm job history is unavailable; a file would have the hours of sessions only."
STILL_COUNTED = "The hours are still being counted. Reload the page in a minute."
NO_RECORD = "The record of GPU hours cannot be read now."


def try_again(trouble: str) -> str:
    """Say what is wrong, and that it may pass."""
    return f"{trouble} Try again in a moment."


def too_many_streams(most: int) -> str:
    """Refuse one more open page."""
    return f"You have {most} live pages open already; close one."
