"""GPU hours: what the hub writes down of real sessions, and what Slurm's accounting says."""

import asyncio
import grp
import pwd
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dsportal.backup import databases
from dsportal.usage.record import UsageRecord
from dsportal.usage.report import Use
from dsportal.usage.sources import UsageSource
from jupyterhub_gpu_slurm.session.reasons import reason_of
from jupyterhub_gpu_slurm.slurm.client import SlurmClient
from tests import faults
from tests.instance import USERS, Instance
from tests.servers import accounting
from tests.servers.accounting import AccountedCluster
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]
HOUR = timedelta(hours=1)
NAME, OTHER = USERS[0], USERS[1]


@dataclass(frozen=True)
class Kept:
    """The hub's record, as the cluster page reads it."""

    record: UsageRecord

    def of_job(self, job_id: str) -> Use | None:
        """Return what is written of one job."""
        now = datetime.now(UTC)
        uses = self.record.uses(now - HOUR, now + HOUR)
        return next((use for use in uses if use.job_id == int(job_id)), None)

    def wait_for(self, job_id: str) -> Use:
        use = until(lambda: self.of_job(job_id), seconds=20, what=f"job {job_id} is written down")
        assert use is not None
        return use

    def wait_for_end(self, job_id: str) -> Use:
        def ended() -> Use | None:
            use = self.of_job(job_id)
            return use if use and use.ended else None

        use = until(ended, seconds=30, what=f"the end of job {job_id} is written down")
        assert use is not None
        return use


@pytest.fixture
def kept(portal: Instance) -> Kept:
    return Kept(UsageRecord.of_hub(portal.settings["hub"]["state_dir"]))


def slurms_times(portal: Instance, job_id: str) -> tuple[datetime, datetime]:
    job = portal.job(job_id)
    start, end = (
        datetime.fromisoformat(job[key]).astimezone(UTC) for key in ("StartTime", "EndTime")
    )
    return start, end


def test_a_session_is_written_down_with_slurms_own_times(
    portal: Instance, visit: Visit, kept: Kept
) -> None:
    user = visit(NAME)
    job_id = user.start_and_wait(gpus=2)
    running = kept.wait_for(job_id)
    assert (running.user, running.gpus, running.ended) == (NAME, 2, None)
    assert any("data-scientists" in group for group in running.groups)
    user.stop()
    use = kept.wait_for_end(job_id)
    assert (use.started, use.ended) == slurms_times(portal, job_id)


def test_a_session_that_outlives_a_killed_hub_is_one_session(
    portal: Instance, visit: Visit, kept: Kept
) -> None:
    user = visit(NAME)
    job_id = user.start_and_wait(gpus=1)
    before = kept.wait_for(job_id)
    faults.kill("hub")
    faults.wait_for_hub(portal)

    def is_seen_again() -> bool:
        use = kept.of_job(job_id)
        return use is not None and use.seen > before.seen

    until(is_seen_again, seconds=60, what="the new hub has seen the session")
    again = kept.wait_for(job_id)
    assert (again.started, again.gpus, again.ended) == (before.started, 1, None)


def test_a_session_that_ended_while_the_hub_was_away_ended_when_slurm_says(
    portal: Instance, visit: Visit, kept: Kept
) -> None:
    user = visit(NAME)
    job_id = user.start_and_wait(gpus=1)
    kept.wait_for(job_id)
    faults.service("stop", "hub")
    portal.slurm("scancel", job_id)
    until(lambda: not portal.jobs(user=NAME), seconds=30, what="the job is over")
    away_since = time.monotonic()
    until(lambda: time.monotonic() > away_since + 2, seconds=9, what="the hub comes back later")
    faults.service("start", "hub")
    faults.wait_for_hub(portal)
    use = kept.wait_for_end(job_id)
    assert (use.started, use.ended) == slurms_times(portal, job_id)


def test_a_start_given_up_in_the_queue_held_nothing(
    portal: Instance, visit: Visit, kept: Kept
) -> None:
    user = visit(NAME)
    with portal.gpus_taken():
        user.start(gpus=4)
        (job_id,) = until(
            lambda: portal.jobs(user=NAME), seconds=20, what="the session's job waits"
        )
        user.stop()
    assert kept.of_job(job_id) is None


def wanted(gpus: int) -> dict[str, object]:
    """Say what the cluster's accounting shall have: the user's group, and a QOS with a limit."""
    return {
        "accounts": [{"name": grp.getgrgid(pwd.getpwnam(NAME).pw_gid).gr_name}],
        "qos": [{"name": "small", "limits": {"GrpTRES": f"gres/gpu={gpus}"}}],
    }


@pytest.fixture(scope="module")
def accounted(portal: Instance) -> Iterator[AccountedCluster]:
    """A Slurm with slurmdbd, on which two users have run jobs."""
    with accounting.running(portal) as cluster:
        cluster.register(**wanted(gpus=2))
        # To use a QOS is each user's right, which a site gives.
        cluster.slurm("sacctmgr", "-i", "modify", "user", NAME, "set", "qos+=small")
        cluster.slurm("srun", "--gres=gpu:2", "sleep", "2", user=NAME)
        cluster.slurm("srun", "--job-name=a|b\nc", "sleep", "2", user=OTHER)
        waits = ["sbatch", "--output=/dev/null", "--wrap=exec sleep 600"]
        cluster.slurm(*waits, "--gres=gpu:3", user=OTHER)
        cluster.slurm(*waits, "--gres=gpu:4", user=OTHER)
        yield cluster


def test_a_limit_of_the_accounting_is_why_a_job_waits(accounted: AccountedCluster) -> None:
    asks = ["sbatch", "--parsable", "--qos=small", "--output=/dev/null", "--wrap=exec sleep 600"]
    job_id = accounted.slurm(*asks, "--gres=gpu:3", user=NAME).strip()
    # Behind others that wait, the reason would be those.
    accounted.slurm("scontrol", "update", f"JobId={job_id}", "Nice=-1000")

    def reason() -> str:
        word = accounted.slurm("squeue", "--noheader", "--format=%r", f"--jobs={job_id}").strip()
        return word if word.startswith("QOS") else ""

    explained = reason_of(until(reason, seconds=30, what="Slurm says why the job waits"))
    accounted.slurm("scancel", job_id)
    assert explained is not None
    assert "your QOS as a whole" in explained.why
    assert "GPUs" in explained.why


def test_registering_twice_changes_nothing_and_a_new_limit_is_set(
    accounted: AccountedCluster,
) -> None:
    assert accounted.register(**wanted(gpus=2)) == ""
    changed = accounted.register(**wanted(gpus=1))
    assert changed.splitlines() == ["sacctmgr modify qos small set GrpTRES=gres/gpu=1"]


def test_the_accountings_database_comes_back_from_its_dump(
    accounted: AccountedCluster, tmp_path: Path
) -> None:
    def asked(words: str) -> str:
        argv = ["/usr/bin/mariadb", "--no-defaults", f"--socket={accounted.database_socket}"]
        argv += ["--user=root", "--skip-column-names", "-e", words]
        return subprocess.run(
            argv, check=True, capture_output=True, text=True, timeout=20
        ).stdout.strip()

    # Beside slurmdbd's own, which goes on.
    asked(
        "CREATE DATABASE beside; CREATE TABLE beside.t (a TEXT); INSERT INTO beside.t VALUES ('x')"
    )
    socket = str(accounted.database_socket)
    databases.dump_mariadb(socket, "beside", tmp_path / "dump")
    asked("DELETE FROM beside.t; CREATE TABLE beside.later (a TEXT)")
    databases.put_mariadb(socket, tmp_path / "dump")
    assert asked("SELECT a FROM beside.t; SHOW TABLES FROM beside").split() == ["x", "t"]
    databases.dump_mariadb(socket, "slurm_accounting", tmp_path / "all")
    assert "acct_table" in (tmp_path / "all").read_text(encoding="utf-8")


def client_of(cluster: AccountedCluster) -> SlurmClient:
    return SlurmClient("/usr/bin", str(cluster.conf), launcher_cmd=(), time_limit=20)


def test_slurms_accounting_says_who_held_gpus(accounted: AccountedCluster, tmp_path: Path) -> None:
    client = client_of(accounted)

    async def ask() -> bool:
        assert await client.accounts_gpus()
        now = datetime.now(UTC)
        jobs = await client.accounted_jobs(now - HOUR, now + HOUR)
        found = {(job.user, job.gpus): job for job in jobs}
        # slurmctld tells slurmdbd in bunches, some seconds later; the last one waits for GPUs.
        if set(found) != {(NAME, 2), (OTHER, 0), (OTHER, 3)}:
            return False
        ended = found[NAME, 2].ended
        assert ended is not None
        assert ended - found[NAME, 2].started >= timedelta(seconds=2)
        assert found[OTHER, 3].ended is None
        return True

    until(lambda: asyncio.run(ask()), seconds=60, every=1, what="all jobs are accounted")
    source = UsageSource(UsageRecord.of_hub(str(tmp_path)), client)
    now = datetime.now(UTC)
    found, lacks_jobs = asyncio.run(source.gpu_hours(now - HOUR, now))
    assert not lacks_jobs
    rows = {row.user: row for row in found}
    assert rows[NAME].gpu_hours >= 2 * 2 / 3600
    assert rows[OTHER].gpu_hours > 0
    assert rows[NAME].groups
    assert rows[NAME].session_gpu_hours == 0


def test_a_slurm_without_accounting_is_seen_as_such(portal: Instance) -> None:
    conf = portal.settings["slurm"]["config_file"]
    client = SlurmClient("/usr/bin", conf, launcher_cmd=(), time_limit=20)
    assert not asyncio.run(client.accounts_gpus())
