"""Checks of container images, run as nobody, as users' rights are."""

from dsportal.doctor.expected import ExpectedImage
from dsportal.doctor.finding import Finding, failed, ok
from dsportal.doctor.programs import ask

# Nothing of this host is seen from within.
_ALONE = ("--containall", "--no-home", "--cleanenv", "--no-eval", "--cwd", "/")
_MOST_SIGNS = 160


def image(expected: ExpectedImage) -> Finding:
    """Run a shell in an image, which does nothing."""
    argv = (expected.apptainer, "-q", "exec", *_ALONE, expected.path, "/bin/sh", "-c", ":")
    answer = ask(*argv, seconds=25, environment={"HOME": "/"}, as_nobody=True)
    if answer.status == 0:
        return ok("runs")
    step = f"see [containers.images.{expected.name}] in portal.toml; users must be able to read it"
    # The reason is at the end of Apptainer's words.
    return failed(answer.last_words[-_MOST_SIGNS:], step)
