"""Messages of the login page for refused logins. ``{contact}``: whom the site says to ask."""

CLOSED = "Your account is disabled or has expired; ask {contact}."
LOCKED = (
    "Your account is locked, as it is after too many wrong passwords. Try again in a few minutes; "
    "if it stays locked, ask {contact}."
)
MUST_CHANGE = (
    "Your password has expired or must be changed. Change it where you change the password of "
    "your account, then log in again; {contact} can help."
)
NOT_ALLOWED = "Your account is not allowed to use the portal; ask {contact} for access."
DIRECTORY_SILENT = "The directory is not responding; try again in a minute."
PAM_SILENT = "The login service is not responding; try again in a minute."


def too_many(seconds: int) -> str:
    """Say when somebody may try again."""
    return f"Too many failed logins. Wait {_amount(seconds)}, then try again."


def too_many_at_once(seconds: int) -> str:
    """Say the same where nobody failed: the directory is slow, and many log in at once."""
    return f"Many people are logging in right now. Wait {_amount(seconds)}, then try again."


def _amount(seconds: int) -> str:
    return "a second" if seconds == 1 else f"{seconds} seconds"
