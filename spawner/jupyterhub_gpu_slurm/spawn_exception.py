"""Turns errors into JupyterHub's `SpawnException`: message, metrics label and log line."""

from jupyterhub.spawner import SpawnException

from jupyterhub_gpu_slurm.errors import Refusal, SessionEnded, SpawnerError
from jupyterhub_gpu_slurm.options.form import render as form


def of_error(error: SpawnerError) -> SpawnException:
    """Return one of our errors as JupyterHub shows it."""
    shown = _exception(
        str(error),
        reason=error.reason,
        log_message=error.detail,
        status=400 if isinstance(error, Refusal) else 503,
    )
    if isinstance(error, SessionEnded) and error.log_lines:
        shown.jupyterhub_html_message = form.render_failure(str(error), error.log_lines)
    return shown


def of_link() -> SpawnException:
    """Return what makes JupyterHub show the form that a link has filled in, and start nothing."""
    return _exception("", reason="link", log_message="a link filled in the form", status=200)


def _exception(words: str, *, reason: str, log_message: str, status: int) -> SpawnException:
    error = SpawnException(words, reason=reason, log_message=log_message, status_code=status)
    # Pages show this where it is set, and else the exception's own text, which is for logs.
    error.jupyterhub_message = words
    return error
