"""What has passed on this machine, and for which files: for the same it need not run again.

For what takes minutes and has no cache of its own. ``.ci/run`` begins without it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from failures import REPORTS

NOTEBOOKS = (
    *("notebook_templates", "tests/notebooks", "deploy/locks"),
    *("tests/desk.py", "tests/images.py", "tests/onefs.py", "tests/training"),
    "portal/dsportal/session/tracking.py",
    # What makes the kernels' environments, the modules of jobs, and images.
    *("deploy/bootstrap.py", "deploy/horovod_environment.py"),
    *("deploy/ansible/roles/environments", "deploy/ansible/roles/modules"),
    "deploy/apptainer.py",
)
"""What tests of whole notebooks run and share, but for the portal in whose sessions they do.

The portal's part of them, `affected.NOTEBOOK_JOBS` prove each time.
"""
ROLES = ("deploy/ansible", "deploy/locks", ".ansible-lint", ".yamllint")
"""All that ansible-lint reads, and its own version."""


@dataclass(frozen=True)
class Proof:
    """That something passes for files as they are."""

    file: Path
    files_hash: str

    def is_known(self) -> bool:
        """Whether it has passed for the same files last."""
        return self.file.exists() and self.file.read_text() == self.files_hash

    def remember(self) -> None:
        """Keep for the next time that it has passed."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(self.files_hash)


def proof(name: str, root: Path, *places: str, reports: Path = REPORTS) -> Proof:
    """Name what passes for these files and folders below ROOT."""
    digest = hashlib.sha256()
    for path in (path for place in places for path in _files(root / place)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)}\0{content}\0".encode())
    return Proof(reports / f"{name}.passed", digest.hexdigest())


def _files(place: Path) -> Iterator[Path]:
    found = sorted(place.rglob("*")) if place.is_dir() else [place]
    return (path for path in found if path.is_file() and "__pycache__" not in path.parts)
