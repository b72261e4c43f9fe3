"""What an administrator types on the head node."""

import os
import subprocess

from tests.instance import SETTINGS, Instance


def portal(instance: Instance, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the instance's own command; its words are in the answer."""
    return subprocess.run(
        [f"/usr/local/sbin/{instance.mark}", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PORTAL_SETTINGS": str(SETTINGS)},
        timeout=120,
        check=False,
    )
