"""Which environments `deploy/prune` removes: real folders, and real processes that use one.

The Slurm is a stand-in: a program that prints what squeue of Slurm 22.05 has printed.
"""

import _ctypes
import json
import os
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bootstrap
import pytest

from dsportal.settings.session import Session
from tests import roles

USES = roles.loaded(roles.ROLES / "environments/files/uses.py")
OLD, USED, FRAMEWORK = (
    "session-0123456789ab",
    "session-ba9876543210",
    "kernel-pytorch-cuda-00112233aabb",
)
DAY = 86400
NOW = 1795831346
ENDS = "import sys; sys.stdin.read()"
LOADS = f"import ctypes, sys; ctypes.CDLL(sys.stdin.readline().strip()); print(flush=True); {ENDS}"


@dataclass(frozen=True)
class Machine:
    """What a machine has: environments, an instance of the portal, homes."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "prefix/environments"

    @property
    def settings(self) -> Path:
        return self.root / "etc/one/portal.toml"

    def make(self, name: str, days: float = 30) -> Path:
        """Make an environment that a deployment has asked for some days ago."""
        place = self.folder / name
        (place / "lib/python3.11/site-packages").mkdir(parents=True)
        (place / "lib/module.py").write_bytes(bytes(1 << 20))
        asked = time.time() - days * DAY
        os.utime(place, (asked, asked))
        return place

    def look(self) -> dict[str, Any]:
        given = {
            "folder": str(self.folder),
            "settings": f"{self.root}/etc",
            "places": [f"{self.root}/prefix/share"],
            "homes": f"{self.root}/home",
            "days": 7,
        }
        found: dict[str, Any] = USES.look(given)
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """An instance whose settings name one environment, and a Slurm without jobs."""
    made = Machine(tmp_path)
    for name in (OLD, USED):
        made.make(name)
    made.settings.parent.mkdir(parents=True)
    made.settings.write_text(
        f'[hub]\nname = "one"\n[session]\npython = "{made.folder}/{USED}/bin/python"\n'
        f'[slurm]\nconfig_file = "/etc/slurm/slurm.conf"\nbin_dir = "{tmp_path}/bin"\n'
    )
    os.utime(made.settings, (NOW, NOW))
    answer_of_squeue(made, "")
    return made


def answer_of_squeue(machine: Machine, printed: str, status: int = 0) -> None:
    program = machine.root / "bin/squeue"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\nexit {status}\n")
    program.chmod(0o755)


@contextmanager
def running(argv: list[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(argv, **{**pipes, **more}) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def started_from(place: Path) -> Iterator[subprocess.Popen[str]]:
    (place / "bin").mkdir()
    shutil.copy("/usr/bin/sleep", place / "bin/sleep")
    # It is called otherwise.
    with running(["sleep", "600"], executable=str(place / "bin/sleep")) as process:
        yield process


@contextmanager
def having_loaded(place: Path) -> Iterator[subprocess.Popen[str]]:
    library = shutil.copy(_ctypes.__file__, place / "lib/loaded.so")
    with running([sys.executable, "-c", LOADS]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print(library, file=process.stdin, flush=True)
        assert process.stdout.readline() == "\n"
        yield process


@contextmanager
def reading(place: Path) -> Iterator[subprocess.Popen[str]]:
    with (
        (place / "lib/module.py").open() as file,
        running(["/usr/bin/sleep", "600"], stdin=file) as process,
    ):
        yield process


@contextmanager
def working_in(place: Path) -> Iterator[subprocess.Popen[str]]:
    with running(["/usr/bin/sleep", "600"], cwd=place) as process:
        yield process


@contextmanager
def looking_for_programs_in(place: Path) -> Iterator[subprocess.Popen[str]]:
    with running(["/usr/bin/sleep", "600"], env={"PATH": f"/usr/bin:{place}/bin"}) as process:
        yield process


@pytest.mark.parametrize(
    "using", [started_from, having_loaded, reading, working_in, looking_for_programs_in]
)
def test_what_a_process_uses_is_in_use(machine: Machine, using: Callable[[Path], Any]) -> None:
    assert OLD not in machine.look()["used"]
    with using(machine.folder / OLD) as process:
        assert machine.look()["used"][OLD].startswith(f"process {process.pid} (")
    assert OLD not in machine.look()["used"]


def test_what_an_instance_names_is_in_use(machine: Machine) -> None:
    assert machine.look()["named"] == {USED: str(machine.settings)}
    other = machine.settings.parent.with_name("two") / "portal.toml"
    other.parent.mkdir()
    other.write_text(f'[hub]\nname = "two"\n[kernels]\na = "{machine.folder}/{OLD}/bin"\n')
    assert machine.look()["named"] == {USED: str(machine.settings), OLD: str(other)}


def test_another_with_a_longer_name_is_another(machine: Machine) -> None:
    text = machine.settings.read_text()
    machine.settings.write_text(text.replace(USED, f"{OLD}c"))
    assert machine.look()["named"] == {}


def test_what_is_beneath_one_in_use_is_in_use(machine: Machine) -> None:
    packages = "lib/python3.11/site-packages"
    for name, beneath in ((USED, OLD), (OLD, FRAMEWORK)):
        line = f"import site; site.addsitedir('{machine.folder}/{beneath}/{packages}')\n"
        (machine.folder / name / packages / "_beneath.pth").write_text(line)
    used = machine.look()["used"]
    assert used[OLD] == f"{USED} is built on it"
    assert used[FRAMEWORK] == f"{OLD} is built on it"


def test_what_a_users_own_environment_is_built_on_is_in_use(machine: Machine) -> None:
    for name in ("ann/environments/nlp", "bob/environments/trap"):
        (machine.root / "home" / name).mkdir(parents=True)
    base = f"{machine.folder}/{OLD}/lib/python3.11/site-packages"
    own = machine.root / "home/ann/environments/nlp"
    (own / "portal-environment.json").write_text(json.dumps({"name": "nlp", "base": base}))
    # Nobody writes to it: who opened it as a file would wait.
    os.mkfifo(machine.root / "home/bob/environments/trap/portal-environment.json")
    assert machine.look()["used"][OLD] == f"{own} is built on it"
    assert Session.model_fields["environments_folders"].default == USES.OWN_FOLDERS


def test_users_environments_are_found_wherever_the_site_lets_them_lie(machine: Machine) -> None:
    folder = f"{machine.root}/nas/users/{{user}}/environments"
    chosen = f'[session]\nenvironments_folders = {{home = "", nas = "{folder}"}}\n'
    machine.settings.write_text(machine.settings.read_text().replace("[session]\n", chosen))
    base = f"{machine.folder}/{OLD}/lib/python3.11/site-packages"
    for own in ("home/ann/environments/unused", "nas/users/ann/environments/nlp"):
        (machine.root / own).mkdir(parents=True)
        record = {"name": own, "base": base if "nas" in own else f"{machine.folder}/{USED}"}
        (machine.root / own / "portal-environment.json").write_text(json.dumps(record))
    used = machine.look()["used"]
    assert used[OLD] == f"{machine.root}/nas/users/ann/environments/nlp is built on it"
    assert "unused" not in used.get(USED, "")


@pytest.mark.parametrize(
    ("submitted", "restarts", "is_obstacle"),
    [
        (NOW - 5 * DAY, 0, True),
        # A session of before may have submitted it.
        (NOW + 5 * DAY, 0, True),
        (NOW + 8 * DAY, 0, False),
        (NOW + 8 * DAY, 1, True),
    ],
)
def test_jobs_of_before_keep_all(
    machine: Machine, submitted: int, restarts: int, is_obstacle: bool
) -> None:
    answer_of_squeue(machine, f"{31:<20}{submitted:<20}{restarts:<20}\n")
    obstacles = machine.look()["obstacles"]
    assert len(obstacles) == is_obstacle
    assert all("jobs of /etc/slurm/slurm.conf may use any: 31 " in said for said in obstacles)


def test_a_slurm_that_does_not_answer_keeps_all(machine: Machine) -> None:
    answer_of_squeue(machine, "", status=1)
    assert "does not say which jobs" in machine.look()["obstacles"][0]


def pruned(machine: Machine, answer: dict[str, Any], **options: bool) -> dict[str, Any]:
    given = {"hosts": {"head": answer}, "days": 7, "delete": True, "ignore_unseen": False}
    done = subprocess.run(
        [sys.executable, bootstrap.DEPLOY / "pruning.py", machine.folder],
        input=json.dumps(given | options),
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def names(machine: Machine) -> set[str]:
    return {path.name for path in machine.folder.iterdir() if not path.name.endswith(".lock")}


def test_those_that_nothing_uses_go_and_all_else_stays(machine: Machine) -> None:
    young = "hub-444444444444"
    machine.make(young, days=2)
    for name in ("notes", "session", f".{young}.building"):
        (machine.folder / name).mkdir()
    # Begun long ago, by a deployment that was interrupted.
    half_made = ".hub-777777777777.building"
    machine.make(half_made)
    # Left by a run that was interrupted.
    (machine.folder / ".hub-555555555555.removing/lib").mkdir(parents=True)
    (machine.folder / "hub-666666666666").symlink_to(USED)
    told = pruned(machine, machine.look())
    assert set(told["removed"]) == {OLD, half_made, ".hub-555555555555.removing"}
    assert names(machine) == {
        *(USED, young, "notes", "session", f".{young}.building", "hub-666666666666")
    }


def test_they_are_only_listed_unless_it_is_said(machine: Machine) -> None:
    before = names(machine)
    told = pruned(machine, machine.look(), delete=False)
    assert names(machine) == before
    assert told["removed"] == []
    assert any(line.startswith(f"{OLD}: unused, 1.0 MiB") for line in told["lines"])


def test_an_obstacle_keeps_all(machine: Machine) -> None:
    before = names(machine)
    told = pruned(machine, machine.look() | {"obstacles": ["jobs of /etc/slurm.conf"]})
    assert names(machine) == before
    assert "nothing may be removed: jobs of /etc/slurm.conf (head)" in told["lines"]


def test_users_folders_that_root_may_not_look_into_keep_all_unless_it_is_said(
    machine: Machine,
) -> None:
    before, answer = names(machine), machine.look() | {"unseen": 3}
    unseen = "folders of users into which root may not look: 3 (head)"
    told = pruned(machine, answer)
    assert names(machine) == before
    assert told["lines"][-1] == f"nothing may be removed: {unseen}"
    told = pruned(machine, answer, ignore_unseen=True)
    assert names(machine) == {USED}
    assert f"ignored: {unseen}" in told["lines"]


def test_what_another_has_too_is_not_counted(machine: Machine) -> None:
    shared = machine.folder / OLD / "lib/module.py"
    shared.unlink()
    shared.hardlink_to(machine.folder / USED / "lib/module.py")
    told = pruned(machine, machine.look(), delete=False)
    assert any(line.startswith(f"{OLD}: unused, 0.0 MiB") for line in told["lines"])


def test_one_that_a_deployment_finds_stays(machine: Machine) -> None:
    place = machine.folder / OLD
    assert bootstrap.once(place, lambda _: pytest.fail("it is there")) == (place, False)
    assert pruned(machine, machine.look())["removed"] == []


def play(machine: Machine, hosts: dict[str, object]) -> str:
    file = machine.root / "hosts.json"
    file.write_text(json.dumps({"all": {"hosts": hosts}}))
    prefix = machine.folder.parent
    given = {
        "environments_folder": str(machine.folder),
        "environments_settings": f"{machine.root}/etc",
        "environments_prune_deletes": True,
        "instance_prefix": str(prefix),
        "instance_etc": str(machine.settings.parent),
        "instance_homes": f"{machine.root}/home",
        "instance_sources": str(bootstrap.REPOSITORY),
    }
    steps = ("uses", "prune")
    tasks = [{"include_role": {"name": "environments", "tasks_from": step}} for step in steps]
    return roles.played_with(machine.root, file, tasks, "-e", json.dumps(given))


def test_the_playbook_removes_what_no_machine_uses(machine: Machine) -> None:
    kept = "mlflow-777777777777"
    with working_in(machine.make(kept)) as process:
        said = play(machine, {"head": {}, "node": {}})
    assert names(machine) == {USED, kept}
    assert f"{kept}: kept, as process {process.pid} (sleep) (" in said


def test_the_playbook_removes_nothing_where_a_machine_does_not_say(machine: Machine) -> None:
    before = names(machine)
    said = play(machine, {"head": {}, "node": {"instance_python": "/bin/false"}})
    assert names(machine) == before
    assert "environments they use: node." in " ".join(roles.refusals(said)["head"].split())


@pytest.mark.parametrize(
    ("options", "deletes", "ignores"),
    [
        ([], False, False),
        (["--delete"], True, False),
        (["--delete", "--ignore-unseen"], True, True),
    ],
)
def test_the_command_deletes_only_if_asked_to(
    options: list[str], deletes: bool, ignores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, object]] = []

    def play(_playbook: str, _inventory: str, arguments: list[str]) -> int:
        told.append(json.loads(arguments[0].removeprefix("--extra-vars=")))
        return 0

    monkeypatch.setattr(bootstrap, "play", play)
    monkeypatch.setattr(sys, "argv", ["deploy/prune", "test", *options])
    assert runpy.run_path(str(bootstrap.DEPLOY / "prune"))["main"]() == 0
    assert told == [
        {
            "environments_prune_deletes": deletes,
            "environments_prune_days": 7,
            "environments_prune_ignores_unseen": ignores,
        }
    ]
