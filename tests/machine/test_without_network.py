"""A machine that reaches no other: the portal comes from a release's file, as the how-to says.

The file is packed here, as `deploy/release` does. Debian's packages are on the machine before: its
archive is what the page leaves to a mirror.
"""

import re
import shutil
from pathlib import Path

import apptainer
import offline
import pytest

from tests.debian.machines import Machine
from tests.machine.fresh import changed, visit
from tests.pages import HOW_TOS, how_to

PAGE = "install-without-network.md"
SETTINGS = """
environments_kernels: []
images_base: ""
nas_mnist_package: ""
"""

pytestmark = pytest.mark.long


@pytest.mark.timeout(2400)
def test_the_portal_is_installed_from_a_release_and_used(cut_off: Machine, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        cut_off.run("/usr/bin/getent", "hosts", "pypi.org")
    match = re.search(r"data-scientist-portal-[\d.]+\d", (HOW_TOS / PAGE).read_text())
    assert match
    name = match.group()
    (tmp_path / "pack").mkdir()
    archive = tmp_path / f"{name}-offline.tar"
    offline.pack(archive, name, offline.PYTHON_LOCKS, tmp_path / "pack")
    shutil.copy(archive, cut_off.files / "root")
    shutil.rmtree(tmp_path / "pack")

    cut_off.run("/bin/sh", "-ec", f"cd /root\n{how_to(PAGE)}", seconds=120)
    sources = cut_off.files / "root" / name
    values = sources / "deploy/ansible/inventories/all_in_one/group_vars/all"
    (values / "without_network.yml").write_text(SETTINGS)
    said = cut_off.run("/usr/bin/make", "-C", f"/root/{name}", "up", seconds=1500)
    assert changed(said) > 0
    assert visit(cut_off) == {"ready": True, "said": "42\n"}

    _, packages = apptainer.read_lock(apptainer.LOCK.read_text())
    (locked,) = (package.file for package in packages if package.name == "apptainer")
    program = "/opt/data-scientist-portal/apptainer/usr/bin/apptainer"
    version = cut_off.run(program, "--version").split()[-1]
    assert locked.startswith(f"apptainer_{version}")
    assert changed(cut_off.run("/usr/bin/make", "-C", f"/root/{name}", "up", seconds=900)) == 0
