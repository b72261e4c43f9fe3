"""The hub waits for its sessions with one TLS context, not with one for each of them.

`dsportal.tls_context` says what one costs. After a restart the hub waits for all sessions at once.
Tried with JupyterHub 6.1.1.
"""

from jupyterhub import app, objects, user

from dsportal.tls_context import reuse_contexts


def install() -> None:
    """Put it into the hub."""
    reuse_contexts(app, objects, user)
