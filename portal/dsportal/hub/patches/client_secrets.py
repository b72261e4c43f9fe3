"""A session's secret for logins is hashed as JupyterHub hashes tokens that it made: in one round.

JupyterHub gives its own token, 122 random bits, a second time to OAuth, and hashes it there 16,384
times, as if somebody had thought it up: on the loop, at each start and each login to a session.

Tried with JupyterHub 6.1.1.
"""

import re

from jupyterhub.oauth import provider
from jupyterhub.orm import APIToken
from jupyterhub.utils import hash_token

_RANDOM = re.compile(r"[0-9a-f]{32,64}", re.ASCII)
"""JupyterHub's tokens, or from ``openssl rand -hex``; all else is hashed as often as ever."""


def hashed(secret: str) -> str:
    """Hash a secret; each hash says in how many rounds it was made."""
    if not _RANDOM.fullmatch(secret):
        return str(hash_token(secret))
    return str(hash_token(secret, rounds=APIToken.generated_rounds))


def install() -> None:
    """Put it in the place of JupyterHub's own."""
    provider.hash_token = hashed
