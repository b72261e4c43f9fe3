"""The exceptions of the spawner, as one tree.

SpawnerError
├── Refusal              the user asked for something that is not to be had; nothing was submitted
│   ├── BadOption        an option is unknown, malformed or out of its range
│   ├── OverLimit        a well-formed request is more than a node, a partition or the site gives
│   └── UnfitImage       the image does not hold what a session needs
├── SlurmError           the scheduler, or the way to it, did not do what it should
│   ├── CommandFailed    a Slurm program ended with an error
│   ├── NoSuchJob        Slurm answered, and does not know the job: no failure of Slurm's
│   ├── CommandTimedOut  a Slurm program did not answer in time; what it did is unknown
│   ├── AccountUnavailable  sudo, or the directory behind it, does not know the user; nothing done
│   ├── LauncherUnavailable  the launcher cannot be run; nothing done
│   ├── SubmissionRefused  sbatch refused the job
│   ├── ExtensionRefused a job's time was not raised, for certain
│   └── UnreadableOutput a Slurm program printed what cannot be read
├── Misconfigured        the hub's configuration has an option that would have no effect
├── ScriptError          a value may not be written into a job script
└── SessionEnded         the job ended before its server answered

``str(error)`` is written for the user of the portal; details for the log are in ``detail``.
"""


class SpawnerError(Exception):
    """The root: catch this at the edge to JupyterHub.

    ``reason`` is the short label that JupyterHub's metrics count.
    """

    reason = "error"

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail or message


class Refusal(SpawnerError):
    """The request cannot be granted; nothing was submitted."""

    reason = "refused"


class BadOption(Refusal):
    """An option is unknown, malformed or out of its range."""

    reason = "bad_option"


class OverLimit(Refusal):
    """A well-formed request is more than a node, a partition or the site gives."""

    reason = "over_limit"


class UnfitImage(Refusal):
    """The image does not hold what a session needs."""

    reason = "unfit_image"


class SlurmError(SpawnerError):
    """The scheduler, or the way to it, did not do what it should."""

    reason = "slurm"


class CommandFailed(SlurmError):
    """A Slurm program ended with an error."""

    reason = "slurm_command"


class NoSuchJob(SlurmError):
    """Slurm answered, and does not know the job: no failure of Slurm's."""

    reason = "slurm_command"


class CommandTimedOut(SlurmError):
    """A Slurm program did not answer in time; what it did is unknown."""

    reason = "slurm_timeout"


class AccountUnavailable(SlurmError):
    """The hub cannot act as the user: sudo, or the directory behind it, does not know the account.

    What was asked for was not done, for certain.
    """

    reason = "account"


class LauncherUnavailable(SlurmError):
    """The launcher cannot be run: it, or sudo, is not there, or not as it should be.

    What was asked for was not done, for certain.
    """

    reason = "launcher"


class SubmissionRefused(SlurmError):
    """Slurm's sbatch refused the job."""

    reason = "slurm_refused"


class ExtensionRefused(SlurmError):
    """A job's time was not raised, for certain."""

    reason = "extension_refused"


class UnreadableOutput(SlurmError):
    """A Slurm program printed what cannot be read."""

    reason = "slurm_output"


class Misconfigured(SpawnerError):
    """The hub's configuration has an option that would have no effect.

    Raised for what is known only when a session starts; the rest is found when the hub starts.
    """

    reason = "configuration"


class ScriptError(SpawnerError):
    """A value may not be written into a job script."""

    reason = "script"


class SessionEnded(SpawnerError):
    """The job ended before its server answered.

    ``log_lines`` is the end of what the job wrote: its owner's words, to be escaped.
    """

    reason = "session_ended"

    def __init__(self, message: str, *, log_lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.log_lines = log_lines
