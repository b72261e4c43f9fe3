"""Environments that are really made, of plain Python; the modules are in tests/integration."""

import errno
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsportal.session.own_environments import base as bases
from dsportal.session.own_environments import command, making
from dsportal.session.own_environments.base import Base
from dsportal.session.own_environments.folders import EnvironmentFolders
from dsportal.session.own_environments.making import Maker, Order
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    EnvironmentRecord,
    OwnEnvironmentError,
)
from tests.packages import wheel

VenvMaker = Callable[[Maker, Base, Path], None]


def without_pip(_: Maker, base: Base, place: Path) -> None:
    subprocess.check_call([base.python, "-m", "venv", "--without-pip", str(place)])


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Leave this process as it is: the command is one of its own, and takes its signals."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def with_pip(tmp_path_factory: pytest.TempPathFactory) -> VenvMaker:
    """Make the first by `Maker`, as that unpacks pip for seconds, and the others like it."""
    kept, make = tmp_path_factory.mktemp("with_pip") / "kept", Maker._venv

    def venv(maker: Maker, base: Base, place: Path) -> None:
        if not kept.exists():
            make(maker, base, kept)
        # pip is a module of it, and nothing here starts a script, which would name the first.
        shutil.copytree(kept, place, symlinks=True, dirs_exist_ok=True, copy_function=os.link)

    return venv


class Scene:
    """A user's two folders, a base with one package, and what was said."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, with_pip: VenvMaker) -> None:
        self.said: list[str] = []
        self.folder = EnvironmentFolder(folder / "own")
        self.scratch = EnvironmentFolder(folder / "scratch/ann", "scratch")
        self.folders = EnvironmentFolders((self.folder, self.scratch))
        self.wheels = folder / "wheels"
        self.base = folder / "base"
        for made in (self.wheels, self.base):
            made.mkdir()
        for name in ("shipped", "ipykernel"):
            info = self.base / f"{name}-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (self.base / f"{name}.py").write_text("version = '1.0'\n")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
        }
        self.maker = Maker(self.folders, environment, self.said.append)
        versions = {"shipped": "1.0", "ipykernel": "1.0"}
        shipped = Base("/usr/bin/python3", "3.11", ("shipped/1.0",), str(self.base), versions)
        monkeypatch.setattr(bases, "find", lambda *_: shipped)
        self.monkeypatch = monkeypatch
        self.with_pip = with_pip

    def create(self, *packages: str, name: str = "mine", folder: str = "") -> EnvironmentRecord:
        venv = self.with_pip if packages else without_pip
        self.monkeypatch.setattr(Maker, "_venv", venv)
        return self.maker.create(Order(name, ("shipped",), packages, folder=folder))

    def python(self, code: str) -> str:
        program = self.folder.place("mine") / "bin/python"
        return subprocess.check_output([program, "-I", "-c", code], text=True).strip()

    @property
    def left(self) -> list[str]:
        """What is in the folder, but for the folder of modulefiles."""
        files = self.folder.path.rglob("*")
        return sorted(str(one.relative_to(self.folder.path)) for one in files if one.is_file())


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_pip: VenvMaker) -> Scene:
    return Scene(tmp_path, monkeypatch, with_pip)


def test_an_environment_has_its_packages_and_the_bases(scene: Scene) -> None:
    wheel(scene.wheels, "wanted")
    scene.create("wanted")
    code = "import wanted, shipped; print(wanted.__file__, shipped.__file__)"
    wanted, shipped = scene.python(code).split()
    assert wanted.startswith(str(scene.folder.place("mine")))
    assert shipped.startswith(str(scene.base))
    assert [one.trouble for one in scene.folder.all()] == [""]
    module = (scene.folder.modulefiles / "mine").read_text()
    assert "module load shipped/1.0\n" in module
    assert f"prepend-path PATH {scene.folder.place('mine')}/bin\n" in module


def test_what_is_shipped_keeps_its_version(scene: Scene) -> None:
    wheel(scene.wheels, "shipped", "2.0")
    with pytest.raises(OwnEnvironmentError):
        scene.create("shipped==2.0")
    assert scene.left == []


def test_what_pip_cannot_install_leaves_nothing(scene: Scene) -> None:
    with pytest.raises(OwnEnvironmentError):
        scene.create("no-such-package")
    assert scene.left == []


@pytest.mark.parametrize("section", ["global", "install"])
def test_a_pip_that_installs_for_the_user_otherwise_does_so_here(
    scene: Scene, tmp_path: Path, section: str
) -> None:
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text(f"[{section}]\nuser = true\n")
    wheel(scene.wheels, "wanted")
    scene.create("wanted")
    assert scene.python("import wanted; print(wanted.version)") == "1.0"


def test_one_that_is_there_stays_as_it_is(scene: Scene) -> None:
    scene.create()
    before = scene.left
    with pytest.raises(OwnEnvironmentError):
        scene.create()
    assert scene.left == before


def test_a_folder_of_the_users_is_not_taken(scene: Scene) -> None:
    hers = scene.folder.path / "mine/notes.txt"
    hers.parent.mkdir(parents=True)
    hers.write_text("hers")
    with pytest.raises(OwnEnvironmentError):
        scene.create()
    with pytest.raises(OwnEnvironmentError):
        scene.maker.remove("mine")
    assert hers.read_text() == "hers"


def test_what_was_not_finished_is_made_anew(scene: Scene) -> None:
    scene.folder.path.mkdir()
    scene.folder.begin("mine")
    (scene.folder.place("mine") / "rest").touch()
    scene.create()
    assert [one.trouble for one in scene.folder.all()] == [""]
    assert not (scene.folder.place("mine") / "rest").exists()


def test_one_that_is_stopped_leaves_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Maker, "_install", stopped)
    with pytest.raises(OwnEnvironmentError):
        scene.create()
    assert scene.left == []


def test_a_full_disk_leaves_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/x")

    monkeypatch.setattr(making, "write_whole", full)
    with pytest.raises(OwnEnvironmentError, match="No space left"):
        scene.create()
    assert scene.left == []


def test_one_lies_where_its_user_wants_it(scene: Scene) -> None:
    scene.create(folder="scratch")
    assert [(one.name, one.trouble) for one in scene.scratch.all()] == [("mine", "")]
    # Found wherever MODULEPATH is looked through, which leads to the first folder only.
    assert scene.left == [".modulefiles/mine"]
    module = (scene.folder.modulefiles / "mine").read_text()
    assert f"prepend-path PATH {scene.scratch.place('mine')}/bin\n" in module
    scene.maker.remove("mine")
    assert scene.left == []
    assert scene.folders.environments() == []


def test_a_name_is_one_environments_wherever_it_lies(scene: Scene) -> None:
    scene.create(folder="scratch")
    with pytest.raises(OwnEnvironmentError, match="scratch"):
        scene.create()
    assert [one.folder.name for one in scene.folders.environments()] == ["scratch"]


def test_half_of_one_elsewhere_is_cleared_away(scene: Scene) -> None:
    scene.scratch.make()
    scene.scratch.begin("mine")
    scene.create()
    assert [one.folder.name for one in scene.folders.environments()] == ["home"]


def test_a_place_that_the_site_does_not_have_is_refused(scene: Scene) -> None:
    with pytest.raises(OwnEnvironmentError, match="home, scratch"):
        scene.create(folder="nowhere")
    assert scene.left == []


def test_a_removed_one_takes_its_module_with_it(scene: Scene) -> None:
    scene.create()
    scene.maker.remove("mine")
    assert scene.left == []
    with pytest.raises(OwnEnvironmentError):
        scene.maker.remove("mine")


def test_a_quota_that_is_reached_keeps_nobody_from_removing_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.create()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(Path, "open", full)
    scene.maker.remove("mine")
    assert scene.left == []


@pytest.mark.parametrize("is_half", [False, True])
def test_what_cannot_be_cleared_away_is_said(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_half: bool
) -> None:
    def busy(place: Path) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", str(place / "lib"))

    if is_half:
        scene.folder.path.mkdir()
        scene.folder.begin("mine")
    monkeypatch.setattr(shutil, "rmtree", busy)
    monkeypatch.setattr(Maker, "_install", lambda *_: busy(Path("/x")))
    with pytest.raises(OwnEnvironmentError, match="mine/lib: Directory not empty"):
        scene.create()
    assert [one.record for one in scene.folder.all()] == [None]


def test_a_link_is_not_followed_when_one_is_removed(scene: Scene, tmp_path: Path) -> None:
    scene.create()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    (scene.folder.place("mine") / "link").symlink_to(tmp_path / "kept")
    scene.maker.remove("mine")
    assert (tmp_path / "kept/file").exists()


def test_a_name_of_a_module_is_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "is_module", lambda *_: True)
    with pytest.raises(OwnEnvironmentError):
        scene.create()
    assert scene.left == []


def test_a_base_is_asked_what_it_has(tmp_path: Path) -> None:
    subprocess.check_call(["/usr/bin/python3", "-m", "venv", "--without-pip", str(tmp_path / "b")])
    (packages,) = (tmp_path / "b").glob("lib/*/site-packages")
    info = packages / "one-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: one\nVersion: 1.5\n")
    found = bases._asked(str(tmp_path / "b/bin/python"), ("m/1",), dict(os.environ))
    assert (found.folder, found.constraints) == (str(packages), "one==1.5\n")
    assert bases.find((), dict(os.environ)).folder == ""


def test_what_an_interrupted_pip_has_left_of_a_base_holds_nothing(tmp_path: Path) -> None:
    subprocess.check_call(["/usr/bin/python3", "-m", "venv", "--without-pip", tmp_path / "base"])
    (packages,) = (tmp_path / "base").glob("lib/python3*/site-packages")
    for folder, text in (
        ("one-1.5.dist-info", "Name: one\nVersion: 1.5\n"),
        ("~ne-1.4.dist-info", "Name: one\nVersion: 1.4\n"),
        ("two-2.0.dist-info", ""),
    ):
        (packages / folder).mkdir()
        if text:
            (packages / folder / "METADATA").write_text(f"Metadata-Version: 2.1\n{text}")
    found = bases._asked(str(tmp_path / "base/bin/python"), ("base/1",), {})
    assert found.constraints == "one==1.5\n"


def test_without_modules_there_is_nothing_to_build_on() -> None:
    with pytest.raises(OwnEnvironmentError):
        bases.find(("pytorch",), {"PATH": "/usr/bin"})
    assert not bases.is_module("pytorch", {})


def test_the_command_takes_packages_before_and_after_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: list[Order] = []
    monkeypatch.setattr(Maker, "create", lambda _, order: orders.append(order))
    environment = {"HOME": str(tmp_path), "PORTAL_ENVIRONMENTS": f"home={tmp_path}"}
    monkeypatch.chdir(tmp_path)
    line = ["create", "mine", "a", "--on", "pytorch", "b>1", "-r", "list.txt", "--in", "home"]
    assert command.main(line, environment) == 0
    assert orders == [Order("mine", ("pytorch",), ("a", "b>1"), (f"{tmp_path}/list.txt",), "home")]
    assert command.main(["create", "bio", "--conda", "scanpy"], environment) == 0
    assert orders[1] == Order("bio", packages=("scanpy",), conda=True)


def test_the_list_is_there_for_programs(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.create()
    environment = {"PORTAL_ENVIRONMENTS": scene.folders.variable}
    assert command.main(["list", "--json"], environment) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["name"], told["on"], told["trouble"]) == ("mine", ["shipped/1.0"], "")
    assert told["in"] == "home"
    assert told["size"] > 1_000
    assert command.main(["list"], environment) == 0
    assert "shipped/1.0" in capsys.readouterr().out


def test_the_list_ends_with_the_quota_of_each_place(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Stand-ins: a file server with quotas is in tests/deploy/test_nfs.py.
    programs = {
        "df": 'case "$4" in */scratch*) kind=ext4 ;; *) kind=nfs4 ;; esac\n'
        f"echo {8 * 2**30} {3 * 2**30} {5 * 2**30} $kind /mnt",
        "quota": f"echo nas:/ifs {2**19} 0 {2**21} 0 10 0 0 0",
    }
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    scene.create(folder="scratch")
    environment = {"PORTAL_ENVIRONMENTS": scene.folders.variable, "PATH": f"{tmp_path}:/usr/bin"}
    assert command.main(["list"], environment) == 0
    *_, home, scratch = capsys.readouterr().out.splitlines()
    assert home == "home: 512 MiB of your quota of 2.0 GiB used"
    assert scratch == "scratch: 3.0 GiB of 8.0 GiB used"


def test_a_site_without_environments_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"], {"PORTAL_ENVIRONMENTS": ""}) == 1
    assert capsys.readouterr().out
