"""Validation of names in requests: a value of another type than text is the sender's fault."""

from tornado import web

# linux/limits.h
_LONGEST_PATH, _LONGEST_PART = 4096, 255


def check(key: str, value: object) -> None:
    """Take a name, or nothing; raises `web.HTTPError` for what no file and no kernel is called."""
    if value is None or (isinstance(value, str) and is_name(value)):
        return
    raise web.HTTPError(400, f"{key} is not the name of anything.")


def is_name(text: str) -> bool:
    r"""Say whether Linux takes a text as a path: no NUL, no half of a character, not too long.

    >>> [is_name(text) for text in ("a/b", "", "\0", "\ud800", "a" * 300)]
    [True, True, False, False, False]
    """
    try:
        path = text.encode()
    except UnicodeEncodeError:
        return False
    is_short = len(path) < _LONGEST_PATH and max(map(len, path.split(b"/"))) <= _LONGEST_PART
    return is_short and b"\0" not in path
