"""Environments that conda makes: a stand-in does, as no registry has conda or micromamba."""

import subprocess
from pathlib import Path

import pytest

from dsportal.session.own_environments.conda import PROGRAM_VARIABLE
from dsportal.session.own_environments.folders import EnvironmentFolders
from dsportal.session.own_environments.kernels import spec
from dsportal.session.own_environments.making import Maker, Order
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    EnvironmentRecord,
    OwnEnvironmentError,
)

# Takes `create --yes --prefix=PREFIX PACKAGE...`, and like micromamba no folder that is there.
STAND_IN = """\
#!/bin/sh
echo "$*" >"$0.asked"
case "$*" in *unheard-of*) mkdir -p "${3#--prefix=}"; exit 1 ;; esac
[ "$1 $2" = "create --yes" ] && [ ! -e "${3#--prefix=}" ] || exit 2
exec /usr/bin/python3 -m venv --without-pip "${3#--prefix=}"
"""


class Scene:
    """A user's folder, and the program."""

    def __init__(self, folder: Path) -> None:
        self.folders = EnvironmentFolders((EnvironmentFolder(folder / "own"),))
        self.program = folder / "bin/micromamba"
        self.program.parent.mkdir()
        self.program.write_text(STAND_IN)
        self.program.chmod(0o755)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            PROGRAM_VARIABLE: str(self.program),
        }

    def create(self, *packages: str, on: tuple[str, ...] = ()) -> EnvironmentRecord:
        maker = Maker(self.folders, self.environment, lambda _: None)
        return maker.create(Order("bio", on, packages, conda=True))

    @property
    def left(self) -> list[Path]:
        return [one for one in self.folders.first.path.rglob("*") if one.is_file()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_conda_makes_a_kernel_and_a_module(scene: Scene) -> None:
    record = scene.create("python=3.11", "scanpy")
    prefix = scene.folders.first.place("bio") / "conda"
    asked = scene.program.with_name("micromamba.asked").read_text()
    assert asked == f"create --yes --prefix={prefix} python=3.11 scanpy ipykernel\n"
    assert (record.title, record.on) == ("bio (conda)", ())
    version = subprocess.check_output([prefix / "bin/python", "-V"], text=True)
    assert version.split()[1] == record.python
    (one,) = scene.folders.environments()
    assert (one.record, one.trouble) == (record, "")
    kernel = spec(one, {"PATH": "/usr/bin"})
    assert kernel is not None
    assert kernel["argv"][0] == f"{prefix}/bin/python"
    variables = kernel["metadata"]["kernel_provisioner"]["config"]["variables"]
    assert variables == {"PATH": f"{prefix}/bin:/usr/bin", "CONDA_PREFIX": str(prefix)}
    module = (scene.folders.first.modulefiles / "bio").read_text()
    assert f"prepend-path PATH {prefix}/bin\nsetenv CONDA_PREFIX {prefix}\n" in module


def test_one_that_the_user_has_loaded_is_taken(scene: Scene) -> None:
    del scene.environment[PROGRAM_VARIABLE]
    scene.environment["PATH"] = f"{scene.program.parent}:/usr/bin:/bin"
    scene.create()
    assert [one.trouble for one in scene.folders.environments()] == [""]


def test_what_conda_cannot_install_leaves_nothing(scene: Scene) -> None:
    with pytest.raises(OwnEnvironmentError, match="unheard-of"):
        scene.create("unheard-of")
    assert scene.left == []


def test_a_program_that_is_not_there_leaves_nothing(scene: Scene) -> None:
    scene.environment[PROGRAM_VARIABLE] = "/nowhere/conda"
    with pytest.raises(OwnEnvironmentError, match="/nowhere/conda"):
        scene.create()
    del scene.environment[PROGRAM_VARIABLE]
    with pytest.raises(OwnEnvironmentError, match="micromamba"):
        scene.create()
    assert scene.left == []


def test_conda_builds_on_no_module(scene: Scene) -> None:
    with pytest.raises(OwnEnvironmentError, match="--on"):
        scene.create(on=("pytorch",))
    assert scene.left == []
