"""Slurm's epilog: which processes are a job's, and how it ends."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests import roles

FILE = roles.ROLES / "slurm_node/files/epilog.py"
NODE, CLUSTER, UID = "node001", "portal", 1000
OURS = {"SLURM_JOB_ID": "12", "SLURMD_NODENAME": NODE, "SLURM_CLUSTER_NAME": CLUSTER}
SESSIONS = {"PORTAL_JOB_ID": "12", "PORTAL_JOB_NODE": NODE, "PORTAL_JOB_CLUSTER": CLUSTER}
PLAIN = "4:memory:/\n0::/system.slice/atd.service\n"
OWN_V1 = "5:freezer:/slurm_node001/uid_1000/job_12/step_batch\n1:name=systemd:/\n"
OWN_V2 = "0::/system.slice/node001_slurmstepd.scope/job_12/step_0/user/task_0\n"


@pytest.fixture(scope="module")
def epilog() -> ModuleType:
    return roles.loaded(FILE)


@pytest.mark.parametrize(
    ("uid", "cgroups", "environment", "is_stray"),
    [
        pytest.param(UID, PLAIN, OURS, True, id="started from outside for the job"),
        pytest.param(UID, OWN_V1, {}, True, id="in the job's own group, whatever it says"),
        pytest.param(UID, OWN_V2, {"SLURM_JOB_ID": "13"}, True, id="the same, version 2"),
        pytest.param(UID, PLAIN, {}, False, id="the user's, of no job"),
        pytest.param(0, PLAIN, OURS, False, id="root's"),
        pytest.param(UID + 1, PLAIN, OURS, False, id="another user's"),
        pytest.param(UID, PLAIN, {**OURS, "SLURM_JOB_ID": "13"}, False, id="another job's"),
        pytest.param(UID, PLAIN, {**OURS, "SLURM_JOB_ID": "120"}, False, id="no mere prefix"),
        pytest.param(UID, PLAIN, {**OURS, "SLURMD_NODENAME": "node002"}, False, id="other node"),
        pytest.param(UID, PLAIN, {**OURS, "SLURM_CLUSTER_NAME": "b"}, False, id="other cluster"),
        pytest.param(UID, PLAIN, {"SLURM_JOB_ID": "12"}, False, id="salloc's shell, login node"),
        pytest.param(UID, PLAIN, SESSIONS, True, id="started in the session"),
        pytest.param(
            UID, PLAIN, {**SESSIONS, "PORTAL_JOB_ID": "13"}, False, id="in another session"
        ),
        pytest.param(
            UID, PLAIN, {**SESSIONS, "PORTAL_JOB_NODE": "node002"}, False, id="on another node"
        ),
        pytest.param(
            UID, PLAIN, {**SESSIONS, "SLURM_JOB_ID": "13"}, True, id="salloc's shell in the session"
        ),
        pytest.param(
            UID,
            PLAIN,
            {**SESSIONS, **OURS, "SLURM_JOB_ID": "13"},
            False,
            id="another job's, submitted in the session",
        ),
        pytest.param(
            UID, PLAIN, {**OURS, **SESSIONS, "PORTAL_JOB_ID": "11"}, True, id="this job's, likewise"
        ),
        pytest.param(
            UID, "0::/user.slice/user-1000.slice/session-3.scope\n", OURS, False, id="login session"
        ),
        pytest.param(
            UID, OWN_V1.replace("job_12", "job_13"), OURS, False, id="in another job's group"
        ),
        pytest.param(
            UID, OWN_V1.replace("node001", "node002"), OURS, False, id="in another node's group"
        ),
        pytest.param(UID, OWN_V2.replace("job_12", "job_121"), OURS, False, id="other group, v2"),
    ],
)
def test_which_processes_are_the_jobs(
    epilog: ModuleType, uid: int, cgroups: str, environment: dict[str, str], is_stray: bool
) -> None:
    job = epilog.EndedJob("12", UID, NODE, CLUSTER)
    assert epilog.is_left_behind(job, uid, cgroups, environment) is is_stray


def test_roots_jobs_are_left_alone(epilog: ModuleType) -> None:
    job = epilog.EndedJob("12", 0, NODE, CLUSTER)
    assert not epilog.is_left_behind(job, 0, PLAIN, OURS)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("0, 4\n1, 511\n", {}),
        ("0, 4\n3, 14563\n", {"3": 14563}),
        ("0, [N/A]\n", {}),
        ("No devices were found\n", {}),
    ],
)
def test_memory_still_held_is_read(epilog: ModuleType, text: str, held: dict[str, int]) -> None:
    assert epilog.held_mb(text) == held


def test_memory_of_gpus_in_slices_is_not_looked_at(
    epilog: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stand-ins for nvidia-smi and for the driver's files.
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 3, 14563\n")
    program.chmod(0o755)
    monkeypatch.setattr(epilog, "NVIDIA_SMI", (str(program),))
    monkeypatch.setattr(epilog, "CAPABILITIES", tmp_path)
    job = epilog.EndedJob.of({**OURS, "SLURM_JOB_UID": str(UID), "SLURM_JOB_GPUS": "3"})
    (tmp_path / "gpu0/mig").mkdir(parents=True)
    assert epilog.gpu_memory(job) == {"3": 14563}
    (tmp_path / "gpu0/mig/gi1").mkdir()
    assert epilog.gpu_memory(job) == {}


@pytest.mark.parametrize(
    ("gpus", "taken"), [("0", "0"), ("0,3", "0,3"), ("", ""), ("0-3", ""), ("0;id", "")]
)
def test_only_plain_numbers_of_gpus_are_taken(epilog: ModuleType, gpus: str, taken: str) -> None:
    environment = {**OURS, "SLURM_JOB_UID": str(UID), "SLURM_JOB_GPUS": gpus}
    assert epilog.EndedJob.of(environment).gpus == taken


def run(
    folder: Path, environment: dict[str, str], *, drain: bool = False, nvidia_smi: str = ""
) -> tuple[int, str]:
    """Run it as slurmd does; return its status and its log.

    With a stand-in for nvidia-smi, as there need be no GPU here; with less patience than it has
    where that is to end.
    """
    log, program, stand_in = folder / "log", folder / "epilog", folder / "nvidia-smi"
    text = FILE.read_text()
    for name, value in {
        "NVIDIA_SMI": repr((str(stand_in),)),
        "NVIDIA_SMI_SECONDS": "1" if "sleep" in nvidia_smi else "20",
        "LONGEST_SECONDS": "3" if "STOP" in nvidia_smi else "25",
    }.items():
        text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        assert count == 1
    program.write_text(f"#!/usr/bin/python3 -ISB\n{text}")
    program.chmod(0o755)
    if nvidia_smi:
        stand_in.write_text(f"#!/bin/bash\n{nvidia_smi}\n")
        stand_in.chmod(0o755)
    (folder / "epilog.json").write_text(json.dumps({"log": str(log), "drain": drain}))
    done = subprocess.run([str(program)], env=environment, timeout=30, check=False)
    return done.returncode, log.read_text() if log.exists() else ""


NOBODYS = {**OURS, "SLURM_JOB_UID": "59999", "SLURM_JOB_GPUS": "3"}


def test_with_nothing_to_do_it_is_silent(tmp_path: Path) -> None:
    assert run(tmp_path, NOBODYS) == (0, "")


def test_what_goes_wrong_does_not_drain_the_node(tmp_path: Path) -> None:
    status, log = run(tmp_path, {"SLURM_JOB_ID": "12"})
    assert status == 0
    assert "the epilog failed: KeyError" in log


def test_without_its_settings_it_does_not_drain_the_node(tmp_path: Path) -> None:
    argv = [sys.executable, "-I", str(FILE)]
    done = subprocess.run(argv, env=NOBODYS, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0
    assert b"the epilog failed" in done.stderr


@pytest.mark.parametrize(
    ("drain", "said", "status", "logged"),
    [
        (False, "echo 3, 14563", 0, "14563 MiB are still held on GPU 3"),
        (True, "echo 3, 14563", 1, "14563 MiB are still held on GPU 3"),
        (True, "echo 3, 2", 0, ""),
        (True, 'case "$*" in *"-i 3") ;; *) echo 3, 14563 ;; esac', 0, ""),
        (True, "exit 9", 0, "the epilog failed: CalledProcessError"),
        (True, "exec sleep 60", 0, "the epilog failed: TimeoutExpired"),
        # Stopped, the child hangs like one that waits in the kernel.
        (True, "kill -STOP $PPID", 0, "gave up after 3 s"),
    ],
)
def test_memory_still_held_drains_the_node_only_where_asked(
    tmp_path: Path, drain: bool, said: str, status: int, logged: str
) -> None:
    given, log = run(tmp_path, NOBODYS, drain=drain, nvidia_smi=said)
    assert given == status
    assert logged in log
    assert bool(logged) == bool(log)


def test_the_log_stays_small(epilog: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * (epilog.LOG_BYTES + 1))
    epilog.note(str(log), "one")
    epilog.note(str(log), "two")
    assert log.read_text().endswith("two\n")
    assert os.path.getsize(log) < 100
    assert (tmp_path / "log.1").exists()


def test_a_name_does_not_make_a_line_of_the_log(epilog: ModuleType) -> None:
    assert epilog.printable("a\nb\x1b[31m") == "a?b?[31m"
