"""Configuration of the node's OpenSSH server: sshd_config(5) and authorized_keys, as text.

It runs as the session's user, for one connection each, and listens nowhere. Who is let in was
decided before, by the token that opens the session: the key only encrypts what the two ends say.
"""

import re
from collections.abc import Mapping
from pathlib import Path

# What sshd sets itself for each login.
_SSHDS_OWN = frozenset({"HOME", "LOGNAME", "MAIL", "SHELL", "SHLVL", "TERM", "USER", "_"})
_KEY = re.compile(r"((?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]{1,60}) ([A-Za-z0-9+/]{1,4000}={0,2})")
_MOST_KEYS = 20


class KeysError(ValueError):
    """The text is not a list of public keys; the message is for the user."""


def server_config(folder: Path, host_key: Path, environment: Mapping[str, str]) -> str:
    """Return sshd_config(5) for a session's connections.

    ``folder`` has the keys that let in, in ``authorized_keys``. Terminals see ``environment``.
    """
    lines = (
        f"HostKey {_word(str(host_key))}",
        f"AuthorizedKeysFile {_word(str(folder / 'authorized_keys'))}",
        # The folder is the user's alone, but /tmp above it is everybody's.
        "StrictModes no",
        "PidFile none",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitUserEnvironment no",
        "X11Forwarding no",
        "PrintMotd no",
        "Subsystem sftp internal-sftp",
        "ClientAliveInterval 30",
        f"SetEnv {' '.join(_word(f'{name}={value}') for name, value in _given(environment))}",
    )
    return "\n".join(lines) + "\n"


def authorized_keys(keys: object) -> str:
    """Return the file of this name for public keys, each as ``TYPE BASE64``.

    Raises `KeysError` for anything else: an option before a key would be obeyed.
    """
    if not isinstance(keys, list) or not 0 < len(keys) <= _MOST_KEYS:
        raise KeysError(f"1 to {_MOST_KEYS} public keys are needed")
    if not all(isinstance(key, str) and _KEY.fullmatch(key) for key in keys):
        raise KeysError("a public key is its type and its text in base64")
    return "".join(f"{key}\n" for key in keys)


def _given(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    # A line of sshd_config cannot hold a line's end.
    return [
        (name, value)
        for name, value in sorted(environment.items())
        if name not in _SSHDS_OWN and value.isprintable()
    ]


def _word(text: str) -> str:
    """Quote as sshd splits a line into words (``argv_split`` of OpenSSH 9.2)."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
