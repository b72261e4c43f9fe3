"""What can come of a question to the directory besides an answer.

Exception
├── DirectoryError   no server answered: nothing is known, and nothing changes
└── Refused          a server answered, and the answer is no
"""

CLOSED = "Your account is disabled or has expired; ask {contact}."
MUST_CHANGE = (
    "Your password has expired or must be changed. Change it where you change the password of "
    "your account, then log in again; {contact} can help."
)


class DirectoryError(Exception):
    """No server of the directory gave an answer; says which and why, for the log."""


class Refused(Exception):
    """The directory's answer is no; ``reason`` is for the log.

    ``words`` are for the user, with ``{contact}`` in them, and only for one whose password was
    right: others learn nothing but that the name or the password is wrong.
    """

    def __init__(self, reason: str, words: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.words = words
