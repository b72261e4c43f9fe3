"""On the NAS everybody has a folder of their own, and a group one that its members share."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.instance import IDLER, PREFIX, ROOT, USERS, Instance
from tests.visitor import Visitor, session_of

USER, COLLEAGUE = USERS[0], USERS[3]
GROUP = f"{PREFIX}-data-scientists"
STORAGE = ROOT / "notebook_templates/benchmarks/storage.ipynb"
OPEN = """
from filesystem.own_folder import open_own
folder = open_own(Path(places), "try")
print(folder.mount, folder.free_bytes() > 0)
folder.remove()
"""


@pytest.fixture(scope="module")
def nas(portal: Instance) -> Path:
    return Path(portal.settings["session"]["folders"]["isilon"])


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USER) as visitor:
        yield visitor


def can(portal: Instance, user: str, *argv: str) -> bool:
    """Whether a user of the machine can do it."""
    try:
        portal.slurm(*argv, user=user)
    except RuntimeError:
        return False
    return True


def test_results_in_ones_own_folder_are_read_by_colleagues_and_written_by_nobody(
    portal: Instance, user: Visitor, nas: Path
) -> None:
    file = nas / "users" / USER / "result.txt"
    user.run(
        "from pathlib import Path; import getpass\n"
        "file = Path('~/isilon/users', getpass.getuser(), 'result.txt').expanduser()\n"
        "file.write_text('mine')"
    )
    try:
        assert file.owner() == USER
        assert portal.slurm("/bin/cat", str(file), user=COLLEAGUE) == "mine"
        assert not can(portal, COLLEAGUE, "/usr/bin/touch", str(file.with_name("other.txt")))
        assert not can(portal, COLLEAGUE, "/bin/rm", "-f", str(file))
    finally:
        file.unlink(missing_ok=True)


def test_a_groups_folder_is_its_members(portal: Instance, user: Visitor, nas: Path) -> None:
    shared = nas / "groups" / GROUP
    user.run(
        f"from pathlib import Path; folder = Path('~/isilon/groups/{GROUP}/set').expanduser()\n"
        "folder.mkdir(); (folder / 'data.txt').write_text('ours')"
    )
    try:
        assert (shared / "set/data.txt").group() == GROUP
        assert portal.slurm("/bin/cat", str(shared / "set/data.txt"), user=COLLEAGUE) == "ours"
        assert can(portal, COLLEAGUE, "/usr/bin/touch", str(shared / "theirs.txt"))
        assert not can(portal, IDLER, "/bin/ls", str(shared))
    finally:
        portal.slurm("/bin/rm", "-rf", str(shared / "set"), str(shared / "theirs.txt"))


def test_nobody_can_take_anothers_place_there(portal: Instance, nas: Path) -> None:
    for name in ("users", "groups"):
        assert not can(portal, USER, "/bin/mkdir", str(nas / name / "newcomer"))
        assert not can(portal, USER, "/bin/mv", str(nas / name), str(nas / "old"))


def test_the_measurement_of_storage_writes_where_its_user_may(user: Visitor, nas: Path) -> None:
    cells = json.loads(STORAGE.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][:2]
    kernel = user.open_kernel(kernel="pytorch")
    said = [user.run_in(kernel, text, seconds=120) for text in (*code, OPEN)]
    folder, has_room = said[-1].split()
    assert (Path(folder).resolve(), has_room) == (nas / "users" / USER, "True"), said
    user.session("DELETE", f"/api/kernels/{kernel}")
