"""A kernel of its own with NFS's server and client in it, in user-mode-linux.

The machine's kernel may have no NFS. ``run`` boots Debian's ``user-mode-linux`` on this machine's
own files, which it can read and not write, without a network but its loopback, and runs
``machine.py`` there; what that finds is JSON.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_BOOT = """#!/bin/sh
/usr/bin/mount -t proc proc /proc
/usr/bin/mount -t tmpfs tmpfs /srv
mkdir /srv/results && /usr/bin/mount -t hostfs -o {folder} none /srv/results
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C PYTHONDONTWRITEBYTECODE=1
python3 {machine} /srv/results >/srv/results/printed 2>&1
echo o >/proc/sysrq-trigger
sleep 60
"""


def run(folder: Path, seconds: float) -> dict[str, Any]:
    """Boot it, wait for its end, and return what it found; ``folder`` is ours and its."""
    boot = folder / "boot"
    boot.write_text(_BOOT.format(folder=folder, machine=HERE / "machine.py"), encoding="utf-8")
    boot.chmod(0o755)
    kernel = ["/usr/bin/linux.uml", "mem=512M", f"uml_dir={folder}/", "umid=nfs"]
    root = ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={boot}"]
    console = ["con=null", "con0=null,fd:1", "quiet"]
    # Without a network, and gone with us.
    apart = ["/usr/bin/unshare", "--net", "--pid", "--fork", "--kill-child"]
    with (folder / "console").open("w") as out:
        subprocess.run(
            [*apart, *kernel, *root, *console],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    printed = folder / "printed"
    found = folder / "found.json"
    words = printed.read_text("utf-8") if printed.exists() else (folder / "console").read_text()
    assert found.exists(), f"the kernel in user mode did not get through: {words}"
    result: dict[str, Any] = json.loads(found.read_text("utf-8"))
    return result
