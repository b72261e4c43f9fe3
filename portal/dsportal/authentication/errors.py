"""Errors of questions to the directory.

Exception
├── DirectoryError        no server answered: nothing is known, and nothing changes
│   └── LimitExceeded     one did, and gave less than there is: this account is not known
└── Refused               a server answered, and the answer is no
    └── Locked            the account takes no password for now, be it right or wrong
"""

from dsportal.authentication.words import LOCKED


class DirectoryError(Exception):
    """No server of the directory gave an answer; says which and why, for the log."""


class LimitExceeded(DirectoryError):
    """The answer is beyond a limit of the directory; other questions may well be answered."""


class Refused(Exception):
    """The directory's answer is no; ``reason`` is for the log.

    ``words`` are for the user, with ``{contact}`` in them, and only for one whose password was
    right, but for a lock: others learn nothing but that the name or the password is wrong.
    """

    def __init__(self, reason: str, words: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.words = words


class Locked(Refused):
    """Told to whoever tries: the directory does not say whether the password was right."""

    def __init__(self, reason: str = "the account is locked", words: str = LOCKED) -> None:
        super().__init__(reason, words)
