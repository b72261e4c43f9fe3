"""What removal deletes of folders in whose place, or in which, something else is mounted."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import roles

pytestmark = pytest.mark.root
NAS, HOMES = "nas/tasks/remove.yml", "accounts/tasks/remove.yml"


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[list[Path]]:
    """A folder that is a mount, and one with a mount in it; each mount has somebody's file."""
    whole, part = tmp_path / "folders/whole", tmp_path / "folders/part/mounted"
    for folder in (whole, part):
        folder.mkdir(parents=True)
        subprocess.run(
            ["/usr/bin/mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=True
        )
        (folder / "precious").touch()
    (tmp_path / "folders/part/own").touch()
    yield [whole, part]
    for folder in (whole, part):
        subprocess.run(["/usr/bin/umount", folder], check=True)


@pytest.mark.parametrize("file", [NAS, HOMES])
def test_what_is_mounted_stays(file: str, mounted: list[Path], tmp_path: Path) -> None:
    """Nor does it keep removal from going on with the rest."""
    hosts = {name: {"nas_folder": f"{tmp_path}/folders/{name}"} for name in ("whole", "part")}
    given = {
        "instance_keep": False,
        "instance_keep_data": False,
        "instance_homes": f"{tmp_path}/folders",
        "instance_users": [{"name": name} for name in hosts],
        # The person's homes are removed where the directory is.
        "group_names": ["directory"],
    }
    task = yaml.safe_load((roles.ROLES / file).read_text())[-1]
    said = roles.played(tmp_path, hosts, {}, [{**task, "vars": given}])
    assert [(folder / "precious").exists() for folder in mounted] == [True, True], said
    assert not (tmp_path / "folders/part/own").exists()
    assert said.count("failed=0") == len(hosts), said
