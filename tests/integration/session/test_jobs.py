"""What a session tells of its user's jobs, with a real Slurm."""

import os
import pwd
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from dsportal.session.jobs import words
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of
from tests.waiting import until

USER, OTHER = USERS[2], USERS[3]
# One line, and another once the file "go" is there.
SCRIPT = "echo first; until [ -e go ]; do sleep 0.1; done; echo second; sleep 600"


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    """A user with a session for all these tests."""
    with session_of(portal, USER) as user:
        yield user


@pytest.fixture
def submit(portal: Instance) -> Iterator[Any]:
    """Submit jobs as a user, as from a terminal; cancel them at the end."""
    job_ids: list[str] = []

    def sbatch(script: str, *options: str, name: str = USER) -> str:
        argv = ["sbatch", "--parsable", "--mem=50M", *options, f"--wrap={script}"]
        job_ids.append(portal.slurm(*argv, user=name, home=home_of(name)).strip())
        return job_ids[-1]

    yield sbatch
    portal.cancel(*job_ids)


def home_of(name: str) -> str:
    return pwd.getpwnam(name).pw_dir


def told(user: Visitor) -> dict[str, Any]:
    """Return what a page hears; a page that was just opened asks anew."""
    answer = user.session("GET", "/portal/jobs?anew=1")
    answer.raise_for_status()
    return dict(answer.json())


def wait_for(user: Visitor, job_id: str, *states: str) -> dict[str, Any]:
    """Wait until a job is in one of the states; return what is told of it."""
    found: dict[str, Any] = {}

    def is_there() -> bool:
        found.update({job["id"]: job for job in told(user)["jobs"]})
        return job_id in found and found[job_id]["state"] in states

    # Slurm itself is asked four times a minute.
    until(is_there, seconds=60, what=f"job {job_id} is {' or '.join(states)}")
    return dict(found[job_id])


def log(user: Visitor, job_id: str, **query: str) -> httpx.Response:
    return user.session("GET", "/portal/jobs/log", params={"job": job_id, **query})


def cancel(user: Visitor, job_id: str) -> httpx.Response:
    return user.session("POST", "/portal/jobs/cancel", json={"job": job_id})


def test_what_is_free_comes_from_the_clusters_service(
    portal: Instance, user: Visitor, submit: Any
) -> None:
    def sees_it() -> bool:
        found = told(user)
        kinds = [(gpus["free"], gpus["total"]) for gpus in found["free"] or ()]
        return found["source"] == "service" and kinds == [(10, 12)]

    submit("sleep 600", "--gres=gpu:2")
    until(sees_it, seconds=60, what="two of the twelve GPUs are taken")


def test_a_job_of_the_terminal_is_seen_followed_and_cancelled(
    portal: Instance, user: Visitor, submit: Any
) -> None:
    portal.slurm("/bin/rm", "-f", f"{home_of(USER)}/go", user=USER)
    name = "two\nlines UserId=root(0)"
    job_id = submit(SCRIPT, f"--job-name={name}", "--output=log of %j.txt", "--time=30")
    job = wait_for(user, job_id, "RUNNING")
    assert job["nodes"] == [portal.job(job_id)["NodeList"]]
    assert (job["gpus"], job["is_session"]) == (0, False)
    assert 0 < job["ends"] - job["started"] <= 30 * 60

    until(lambda: log(user, job_id).status_code == 200, seconds=20, what="the log is there")
    until(lambda: log(user, job_id).json()["text"] != "", seconds=20, what="the first line")
    first = log(user, job_id).json()
    assert (first["text"], first["is_over"], first["has_err"]) == ("first\n", False, False)
    assert first["path"] == f"{home_of(USER)}/log of {job_id}.txt"

    portal.slurm("/usr/bin/touch", f"{home_of(USER)}/go", user=USER)
    on = {"file": first["file"], "offset": str(first["next"])}
    until(lambda: log(user, job_id, **on).json()["text"], seconds=20, what="the second line")
    assert log(user, job_id, **on).json()["text"] == "second\n"

    assert cancel(user, job_id).status_code == 200
    over = wait_for(user, job_id, "CANCELLED")
    assert over["is_over"]
    last = log(user, job_id, **on).json()
    assert last["is_over"] is True
    assert "CANCELLED" in last["text"]


def test_a_task_that_failed_says_how(user: Visitor, submit: Any) -> None:
    array = submit("echo out; echo trouble >&2; exit 3", "--array=4", "--error=err-%A-%a")
    task = f"{array}_4"
    job = wait_for(user, task, "FAILED")
    assert (job["exit_code"], job["signal"]) == (3, None)
    out, err = log(user, task).json(), log(user, task, stream="err").json()
    assert (out["text"], out["has_err"]) == ("out\n", True)
    assert (err["text"], err["path"]) == ("trouble\n", f"{home_of(USER)}/err-{array}-4")


def test_anothers_job_is_not_told_not_cancelled_and_not_read(
    portal: Instance, user: Visitor, submit: Any
) -> None:
    # Its owner would like it to be taken for the user's, with a file of the user's.
    mine = f"{home_of(USER)}/mine.txt"
    portal.slurm("/usr/bin/tee", mine, user=USER, stdin="secret")
    forged = f"x UserId={USER}({pwd.getpwnam(USER).pw_uid})\n   StdOut={mine}"
    job_id = submit("sleep 600", f"--comment={forged}", f"--job-name={forged}", name=OTHER)
    until(lambda: portal.job(job_id)["JobState"] == "RUNNING", seconds=30, what="it runs")

    assert job_id not in {job["id"] for job in told(user)["jobs"]}
    refused = cancel(user, job_id)
    assert refused.status_code == 409
    assert "denied" in refused.json()["message"]
    assert portal.job(job_id)["JobState"] == "RUNNING"
    unread = log(user, job_id)
    assert unread.status_code == 404
    assert unread.json()["message"] == words.no_job(job_id)


def test_a_job_whose_output_is_anothers_file_shows_nothing(
    portal: Instance, user: Visitor, submit: Any
) -> None:
    theirs = f"{home_of(OTHER)}/theirs.txt"
    portal.slurm("/usr/bin/tee", theirs, user=OTHER, stdin="secret")
    job_id = submit("sleep 600", f"--output={theirs}")
    wait_for(user, job_id, "RUNNING", "FAILED", "COMPLETED")
    answer = log(user, job_id)
    assert answer.status_code == 404
    assert "Permission denied" in answer.json()["message"]


def test_an_allocation_has_no_log(portal: Instance, user: Visitor) -> None:
    before = set(portal.jobs(user=USER))
    portal.slurm("salloc", "--no-shell", "--mem=50M", user=USER)
    (job_id,) = set(portal.jobs(user=USER)) - before
    try:
        assert log(user, job_id).json()["message"] == words.NO_OUTPUT
    finally:
        portal.cancel(job_id)


def test_the_session_is_not_cancelled_from_within(portal: Instance, user: Visitor) -> None:
    job_id = told(user)["session_job"]
    assert job_id in portal.jobs(user=USER)
    answer = cancel(user, job_id)
    assert answer.status_code == 409
    assert answer.json()["message"] == words.ITS_OWN_SESSION
    assert portal.job(job_id)["JobState"] == "RUNNING"


@pytest.mark.parametrize("path", ["/portal/jobs", "/portal/jobs/log?job=1", "/portal/quota"])
def test_others_are_not_let_in(portal: Instance, user: Visitor, path: str) -> None:
    other = Visitor(portal, OTHER)
    other.log_in()
    headers = {"Authorization": f"token {other.token()}"}
    other.close()
    url = f"{portal.url}/user/{USER}{path}"
    assert user.session("GET", path).status_code in (200, 404)
    assert httpx.get(url, headers=headers).status_code in (302, 403)
    assert httpx.get(url).status_code in (302, 403)


def test_the_storage_is_told(user: Visitor) -> None:
    home = user.session("GET", "/portal/quota").json()
    assert home["name"] == ""
    assert os.stat(home["mount"]).st_dev == os.stat(home_of(USER)).st_dev
    shared = user.session("GET", "/portal/quota", params={"path": "isilon"}).json()
    assert shared["name"] == "isilon"
    assert 0 < shared["used"] + shared["free"] <= shared["size"]
    outside = user.session("GET", "/portal/quota", params={"path": "../other"})
    assert outside.status_code == 400


def test_what_a_page_asks_by_itself_is_no_sign_of_work(user: Visitor) -> None:
    def last() -> str:
        return str(user.session("GET", "/api/status").json()["last_activity"])

    user.session("GET", "/api/contents")
    before = last()
    for path in ("/portal/jobs?anew=1", "/portal/jobs/log?job=1", "/portal/quota"):
        user.session("GET", path)
    assert last() == before
