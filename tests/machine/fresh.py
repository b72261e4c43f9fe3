"""A fresh Debian with a clone of this repository, and a visitor of the portal on it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.debian import building, roots
from tests.debian.machines import Machine
from tests.instance import ROOT, SYSTEM_AUTHORITIES

SLIRP_NAMESERVER = "10.0.2.3"

VISIT = """
import json, sys, tomllib
from pathlib import Path
from tests.instance import Instance
from tests.visitor import Visitor

visitor = Visitor(Instance(tomllib.loads(Path(sys.argv[1]).read_text())), "user1")
visitor.log_in().raise_for_status()
if visitor.server() is None:
    assert visitor.start(gpus=2).status_code in (201, 202)
    visitor.wait_until_ready()
print(json.dumps({"ready": visitor.server()["ready"], "said": visitor.run("print(6 * 7)")}))
visitor.close()
"""


def make(machine: Machine, target: str, clone: str = "portal") -> str:
    """Run one of the README's commands in a clone below root's home."""
    return machine.run(
        "/usr/bin/make", "-C", f"/root/{clone}", target, seconds=1500, **building.lent()
    )


def visit(machine: Machine) -> dict[str, object]:
    """Be ``user1`` in its network: log in, start a session if there is none, compute."""
    settings = machine.files / "etc" / "data-scientist-portal" / "portal.toml"
    argv = ["/usr/bin/nsenter", f"--target={machine.leader}", "--net", "--", sys.executable]
    done = subprocess.run(
        [*argv, "-c", VISIT, str(settings)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def changed(printed: str) -> int:
    """Return how many tasks changed something in a run of ``make up``."""
    match = re.search(r"changed=(\d+)\s+unreachable=0\s+failed=0", printed)
    assert match, printed[-2000:]
    return int(match.group(1))


def furnish(root: Path) -> None:
    """Make the root of a new machine what an administrator has before the first command."""
    (root / "etc" / "hostname").write_text("fresh\n")
    (root / "etc" / "resolv.conf").unlink(missing_ok=True)
    (root / "etc" / "resolv.conf").write_text(f"nameserver {SLIRP_NAMESERVER}\n")
    # As an administrator would let it trust more; and before it has what makes a bundle of them.
    for place in ("usr/local/share/ca-certificates/lent.crt", SYSTEM_AUTHORITIES.relative_to("/")):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SYSTEM_AUTHORITIES, root / place)
    for told in roots.APT_SETTINGS:
        shutil.copy(told, root / told.relative_to("/"))
    for wheels in building.wheel_folders():
        shutil.copytree(wheels, root / wheels.relative_to("/"), dirs_exist_ok=True)
