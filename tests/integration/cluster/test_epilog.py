"""What a job leaves behind on its node is ended; what is not the job's stays.

The strays are real: a program outside the job's cgroup starts them for the job, as at, a terminal
multiplexer or a daemon of the user's does, with the job's own environment.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.instance import LOGS, NODES, USERS, Instance
from tests.processes import running
from tests.waiting import until

USER = USERS[3]
Outside = Callable[[dict[str, str]], int]


@pytest.fixture
def job(portal: Instance, tmp_path: Path) -> Iterator[Callable[[], tuple[str, dict[str, str]]]]:
    """Start a job of the user's that waits; give its number and the environment in it."""
    started = []

    def start() -> tuple[str, dict[str, str]]:
        argv = ["sbatch", "--parsable", "--gres=gpu:1", "--mem=100M", "--output=/dev/null"]
        # One node for all of them.
        argv += [f"--nodelist={NODES[0]}", "--wrap=exec sleep 987"]
        job_id = portal.slurm(*argv, user=USER).strip()
        started.append(job_id)
        return job_id, until(lambda: environment_of(job_id), seconds=30, what="the job runs")

    yield start
    portal.cancel(*started)


def environment_of(job_id: str, name: str = "SLURM_JOB_ID") -> dict[str, str]:
    """Read the environment of a job's program, which has the job's number under this name."""
    for process in running("sleep", "987", user=USER):
        # One that ends just now.
        with suppress(psutil.Error):
            environment = process.environ()
            if process.cmdline() == ["sleep", "987"] and environment.get(name) == job_id:
                return environment
    return {}


@pytest.fixture
def outside(portal: Instance) -> Iterator[Outside]:
    """Start processes of the user's outside any job, which ignore what can be ignored."""
    pids = []

    def start(environment: dict[str, str]) -> int:
        program = "trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 654' &)"
        argv = ["/usr/sbin/runuser", "-u", USER, "--", "/bin/sh", "-c", program]
        with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            process.stdout.close()
        pids.append(pid)
        assert "job_" not in Path(f"/proc/{pid}/cgroup").read_text()
        return pid

    yield start
    for pid in pids:
        if is_there(pid):
            os.kill(pid, signal.SIGKILL)


def is_there(pid: int) -> bool:
    """Whether a process runs; one that only waits to be taken note of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_a_stray_process_ends_with_its_job(
    portal: Instance, job: Callable[[], tuple[str, dict[str, str]]], outside: Outside
) -> None:
    job_id, environment = job()
    stray = outside(environment)
    portal.cancel(job_id)
    assert not is_there(stray)
    log = (LOGS / "epilog.log").read_text()
    assert f"job {job_id} of user" in log
    assert f"{stray} (sleep)" in log
    # The node takes new jobs.
    assert portal.slurm("sinfo", "-h", "-n", NODES[0], "-o", "%T").split()[0] != "drained"


def test_other_processes_of_the_user_stay(
    portal: Instance, job: Callable[[], tuple[str, dict[str, str]]], outside: Outside
) -> None:
    job_id, environment = job()
    other_id, other_environment = job()
    of_the_other_job = outside(other_environment)
    elsewhere = outside({**environment, "SLURMD_NODENAME": NODES[1]})
    other_cluster = outside({**environment, "SLURM_CLUSTER_NAME": "portal"})
    # As in the shell that salloc opens on a login node.
    shell = outside({key: environment[key] for key in ("PATH", "SLURM_JOB_ID")})
    plain = outside({"PATH": environment["PATH"]})
    portal.cancel(job_id)
    assert all(map(is_there, (of_the_other_job, elsewhere, other_cluster, shell, plain)))
    assert environment_of(other_id)
    portal.cancel(other_id)
    assert not is_there(of_the_other_job)
    assert all(map(is_there, (elsewhere, other_cluster, shell, plain)))


def test_what_a_killed_session_left_in_the_temporary_folder_is_removed_as_its_user(
    portal: Instance, job: Callable[[], tuple[str, dict[str, str]]]
) -> None:
    job_id, _ = job()
    own, others, of_another_job, link = (
        Path(tempfile.gettempdir(), f"session-{job_id}{end}") for end in ("-a", "-b", "1-c", "-d")
    )
    kept = Path(tempfile.gettempdir(), f"of-{USER}")
    for folder, user in ((own, USER), (others, USERS[0]), (of_another_job, USER), (kept, USER)):
        (folder / "sockets").mkdir(parents=True)
        shutil.chown(folder, user, None)
        shutil.chown(folder / "sockets", user, None)
    link.symlink_to(kept)
    try:
        portal.cancel(job_id)
        until(lambda: not own.exists(), seconds=10, what="the session's folder is gone")
        assert all((folder / "sockets").is_dir() for folder in (others, of_another_job, kept))
    finally:
        for folder in (own, others, of_another_job, kept):
            shutil.rmtree(folder, ignore_errors=True)
        link.unlink()


def test_what_a_job_says_in_its_variables_does_not_make_it_another_job(
    portal: Instance, job: Callable[[], tuple[str, dict[str, str]]]
) -> None:
    job_id, _ = job()
    argv = ["sbatch", "--parsable", "--mem=100M", "--output=/dev/null", f"--nodelist={NODES[0]}"]
    argv += [f"--wrap=export SLURM_JOB_ID={job_id}; exec sleep 987"]
    liar = portal.slurm(*argv, user=USER).strip()
    try:
        # Slurm has set this older name, too, which it does not change.
        until(lambda: environment_of(liar, "SLURM_JOBID"), seconds=60, what="it runs")
        portal.cancel(job_id)
        assert portal.job(liar)["JobState"] == "RUNNING"
        assert environment_of(job_id), "its process was taken for the other job's"
    finally:
        portal.cancel(liar)
