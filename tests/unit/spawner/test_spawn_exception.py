"""What JupyterHub's pages and its log say of our errors."""

import pytest

from jupyterhub_gpu_slurm import spawn_exception
from jupyterhub_gpu_slurm.errors import BadOption, OverLimit, SessionEnded, SlurmError, SpawnerError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadOption("No such option.", detail="of the log"), 400),
        (OverLimit("Too many.", detail="of the log"), 400),
        (SlurmError("No answer.", detail="of the log"), 503),
    ],
)
def test_the_user_reads_the_message_and_the_log_has_the_detail(
    error: SpawnerError, status: int
) -> None:
    shown = spawn_exception.of_error(error)
    assert (shown.jupyterhub_message, shown.status_code) == (str(error), status)
    assert (shown.reason, shown.log_message) == (error.reason, "of the log")


def test_a_failed_start_shows_its_log_escaped() -> None:
    shown = spawn_exception.of_error(SessionEnded("It failed.", log_lines=("<b>no module</b>",)))
    assert "&lt;b&gt;no module&lt;/b&gt;" in shown.jupyterhub_html_message


def test_one_without_a_log_has_no_page_of_its_own() -> None:
    shown = spawn_exception.of_error(SessionEnded("It failed."))
    assert getattr(shown, "jupyterhub_html_message", "") == ""


def test_a_link_is_no_failure() -> None:
    shown = spawn_exception.of_link()
    assert (shown.jupyterhub_message, shown.status_code, shown.reason) == ("", 200, "link")
