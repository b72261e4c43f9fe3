"""What the tool of a site that attaches the portal has installed for all its hosts, in ``/sw``.

The environment of sessions, by the commands that the page has a site's tool run; and a module for
a kernel of the site's own.
"""

from pathlib import Path

import bootstrap
from wheels import build_wheels

from tests.debian import building
from tests.instance import ROOT, SYSTEM_AUTHORITIES
from tests.pages import how_to

FOLDER = Path("/sw")
SESSION = FOLDER / "portal-0.2.0"
MODULES = FOLDER / "modulefiles"
_KERNEL = FOLDER / "analysis"
# Its Python is another than that of sessions; the packages that a kernel needs are the same.
_MODULE = f"""
mkdir -p {MODULES}/analysis
python3 -m venv --without-pip {_KERNEL}
cd {_KERNEL}/lib/python3*/site-packages
echo {SESSION}/lib/python3*/site-packages > shared.pth
printf '#%%Module1.0\\nprepend-path PATH {_KERNEL}/bin\\n' > {MODULES}/analysis/1.0
"""


def installed(base: Path) -> Path:
    """Return what is in the folder for hosts with this root, made where it is missing."""
    ours = build_wheels()
    there = {"dist/data-scientist-portal-0.2.0/*.whl": " ".join(map(str, ours))}
    of_the_page = how_to("attach-to-your-slurm.md", 3, there)
    commands = f"cd {ROOT}\n{of_the_page}{_MODULE}"
    lent = [ROOT, SYSTEM_AUTHORITIES, *{each.parent for each in ours}, *building.wheel_folders()]
    told = {**building.lent(), "PIP_COMPILE": "0"}

    def make(work: Path) -> None:
        (work / "root").mkdir()
        bound = [f"{work}/root:{FOLDER}"]
        argv = ["/bin/bash", "-ec", commands]
        building.call(
            building.within(base, argv, bound=bound, lent=lent, variables=told), seconds=600
        )

    root = bootstrap.CACHE / f"{base.name}-software"
    made_of = [each.read_bytes() for each in (bootstrap.lock_file("session"), *ours)]
    building.once(root, commands.encode() + b"".join(made_of), make)
    return root
