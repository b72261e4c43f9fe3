"""A machine whose name service asks a directory, as the role accounts sets it up.

The role's own template of nslcd's settings, and the real nslcd, in a mount namespace of their own:
the machine's settings are neither used nor changed.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.instance import ROOT
from tests.waiting import until

ROLE = ROOT / "deploy/ansible/roles/accounts"
# Kept by the namespace's first process: nslcd ends with it.
_START = """\
mount --bind "$1/nslcd.conf" /etc/nslcd.conf
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
mount -t tmpfs tmpfs /run
mkdir -m 0755 /run/nslcd && chown nslcd:nslcd /run/nslcd
: > /run/of-the-test
exec /usr/sbin/nslcd -n
"""


@dataclass(frozen=True)
class Machine:
    """What runs there."""

    process: subprocess.Popen[bytes]

    def told(self, *argv: str) -> str:
        """Run a program there; return what it printed, nothing where it failed."""
        enter = ["/usr/bin/nsenter", f"--target={self.process.pid}", "--mount", "--", *argv]
        done = subprocess.run(enter, check=False, capture_output=True, text=True, timeout=60)
        return done.stdout.strip()


@contextlib.contextmanager
def running(folder: Path, **variables: Any) -> Iterator[Machine]:
    """Run one, with variables of the role that are not the defaults."""
    _settings(folder, variables)
    (folder / "nsswitch.conf").write_text("passwd: files ldap\ngroup: files ldap\n")
    argv = ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", _START, "sh", str(folder)]
    process = subprocess.Popen(argv)
    machine = Machine(process)
    try:
        listens = (
            "/bin/sh",
            "-c",
            "[ -e /run/of-the-test ] && [ -S /run/nslcd/socket ] && echo yes",
        )
        until(lambda: machine.told(*listens), seconds=30, what="nslcd listens")
        yield machine
    finally:
        process.terminate()
        process.wait(timeout=30)


def _settings(folder: Path, variables: dict[str, Any]) -> None:
    given = {"instance_homes": "/home", "ansible_python_interpreter": "/usr/bin/python3"}
    (folder / "variables.json").write_text(json.dumps(given | variables))
    argv = [str(Path(sys.executable).with_name("ansible")), "localhost", "-c", "local"]
    argv += ["-m", "ansible.builtin.template", "-e", f"@{ROLE}/defaults/main.yml"]
    argv += ["-e", f"@{folder}/variables.json"]
    argv += ["-a", f"src={ROLE}/templates/nslcd.conf.j2 dest={folder}/nslcd.conf mode=0600"]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
