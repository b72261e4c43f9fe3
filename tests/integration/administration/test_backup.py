"""A backup of the running portal, put back onto a machine that has lost everything."""

import shutil
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dsportal.backup import saving
from dsportal.settings.slurm import SlurmSettings
from dsportal.usage.record import UsageRecord
from tests import faults
from tests.administrator import portal as command
from tests.instance import SETTINGS, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until


@pytest.fixture
def plain_job(portal: Instance) -> Iterator[str]:
    """A job of a user's own that runs."""
    asks = ["sbatch", "--parsable", "--mem=100", "--time=10", "--output=/dev/null"]
    job_id = portal.slurm(*asks, "--wrap=exec sleep 600", user=USERS[3]).strip()
    until(lambda: portal.job(job_id)["JobState"] == "RUNNING", seconds=30, what="it runs")
    yield job_id
    portal.cancel(job_id)


def test_an_extension_meanwhile_is_not_lost(
    portal: Instance, plain_job: str, tmp_path: Path
) -> None:
    (tmp_path / "scontrol").symlink_to("/usr/bin/scontrol")
    # Between what is read and what is written, somebody extends the job.
    extend = f"/usr/bin/scontrol update JobId={plain_job} TimeLimit=20 JobName=renamed"
    (tmp_path / "squeue").write_text(
        f'#!/bin/bash\n/usr/bin/squeue "$@" | grep {plain_job}\n{extend}\n'
    )
    (tmp_path / "squeue").chmod(0o755)
    slurm = SlurmSettings(
        bin_dir=str(tmp_path), config_file=portal.settings["slurm"]["config_file"]
    )
    assert saving.written(Path(portal.settings["backup"]["slurm_state_dir"]), slurm, seconds=60)
    job = portal.job(plain_job)
    assert (job["TimeLimit"], job["JobName"]) == ("00:20:00", "renamed")


def test_having_the_jobs_written_changes_no_job(portal: Instance, plain_job: str) -> None:
    faults.wait_for_written_jobs(portal)
    state = Path(portal.settings["backup"]["slurm_state_dir"])
    before = portal.job(plain_job), (state / "job_state").stat().st_mtime_ns
    assert saving.written(state, SlurmSettings(config_file=portal.settings["slurm"]["config_file"]))
    assert (state / "job_state").stat().st_mtime_ns != before[1]
    after = portal.job(plain_job)
    assert {**after, "RunTime": ""} == {**before[0], "RunTime": ""}


@pytest.fixture(scope="module")
def file(portal: Instance, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that was made while the portal ran."""
    file = tmp_path_factory.mktemp("backup") / "portal.tar.gz"
    done = command(portal, "backup", str(file))
    assert done.returncode == 0, done.stderr
    return file


def test_only_root_can_read_a_backup_and_it_holds_all_parts(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        kinds = [name.partition(".")[2] for name in archive.getnames()]
    assert set(kinds) == {"files", "json", "sqlite"}


def test_a_backup_is_not_overwritten(portal: Instance, file: Path) -> None:
    done = command(portal, "backup", str(file))
    assert (done.returncode, done.stderr.count("is there already")) == (1, 1)


def test_of_the_nightly_backups_the_newest_are_kept(portal: Instance, tmp_path: Path) -> None:
    given = portal.settings["backup"]["folder"]
    text = SETTINGS.read_text().replace(f'"{given}"', f'"{tmp_path}/nightly"\nkeep = 1', 1)
    settings = tmp_path / "portal.toml"
    settings.write_text(text)
    for old in ("2020-01-01", "2020-01-02"):
        (tmp_path / "nightly").mkdir(exist_ok=True)
        (tmp_path / f"nightly/portal-{old}T023000Z.tar.gz").touch()
    # Names that come before and after any night's.
    for name in ("portal-0.2.0", "portal-before-upgrade", "somebodys"):
        (tmp_path / f"nightly/{name}.tar.gz").touch()
    done = command(portal, "backup", "--nightly", "--settings", str(settings))
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "nightly").iterdir())
    assert [name[:10] for name in names] == ["portal-0.2", "portal-202", "portal-bef", "somebodys."]
    assert not names[1].startswith("portal-2020")


def test_nothing_is_put_back_while_the_services_run(portal: Instance, file: Path) -> None:
    done = command(portal, "restore", str(file), "--replace")
    assert done.returncode == 1
    assert "the hub and slurmctld must not run meanwhile" in done.stderr


@pytest.mark.usefixtures("waiting_queue")
def test_an_empty_machine_gets_everything_back(
    portal: Instance, visit: Callable[[str], Visitor], tmp_path: Path
) -> None:
    user = visit(USERS[2])
    job_id = user.start_and_wait(gpus=1)
    kernel_id = user.open_kernel()
    user.run_in(kernel_id, "kept = 42")
    token = {"Authorization": f"token {user.token()}"}
    record = UsageRecord.of_hub(portal.settings["hub"]["state_dir"])
    until(lambda: job_id in job_ids(record), seconds=30, what="the session is in the record")
    rights = SETTINGS.with_name("proxy.env").read_text()

    plain = backfilled_job(portal)
    since = portal.job(plain)["StartTime"]

    file = tmp_path / "portal.tar.gz"
    assert command(portal, "backup", str(file)).returncode == 0
    for service in ("hub", "slurmctld"):
        faults.service("stop", service)
    done = command(portal, "restore", str(file))
    assert done.returncode == 1
    assert "is there already" in done.stderr
    assert "--replace" in done.stderr

    states = (portal.settings["hub"]["state_dir"], portal.settings["backup"]["slurm_state_dir"])
    slurm_conf = Path(portal.settings["slurm"]["config_file"])
    places = [SETTINGS.parent, slurm_conf.parent, *map(Path, states)]
    for place in places:
        shutil.rmtree(place)

    done = command(portal, "restore", str(file))
    assert done.returncode == 0, done.stderr
    assert all(place.is_dir() for place in places)
    for service in ("slurmctld", "hub"):
        faults.service("start", service)
    faults.wait_for_nodes(portal)
    faults.wait_for_hub(portal)

    assert SETTINGS.with_name("proxy.env").read_text() == rights
    assert portal.jobs(user=user.name) == [job_id]
    assert portal.job(plain)["StartTime"] == since, "it was ended, and began once more"
    portal.cancel(plain)
    assert user.http.get("/hub/home").url.path == "/hub/home", "the browser is still logged in"
    assert user.http.get("/hub/api/user", headers=token).json()["name"] == user.name
    assert user.run_in(kernel_id, "print(kept)").strip() == "42"
    assert job_id in job_ids(record)
    asks = ["sbatch", "--parsable", "--wrap=true", "--output=/dev/null"]
    assert int(portal.slurm(*asks, user=user.name)) > int(job_id), "numbers of jobs go on"


def backfilled_job(portal: Instance) -> str:
    """Start a job of a user's own, of which slurmctld has written only that it waits."""
    faults.wait_for_written_jobs(portal)
    before = faults.backfilled(portal)
    asks = ["sbatch", "--parsable", "--mem=100", "--time=5", "--output=/dev/null"]
    job_id = portal.slurm(*asks, "--wrap=exec sleep 600", user=USERS[3]).strip()
    until(lambda: portal.job(job_id)["JobState"] == "RUNNING", seconds=30, what="it runs")
    assert faults.backfilled(portal) > before
    return job_id


def job_ids(record: UsageRecord) -> set[str]:
    """Return the jobs of the record of sessions."""
    now = datetime.now(UTC)
    return {str(use.job_id) for use in record.uses(now - timedelta(days=1), now)}
