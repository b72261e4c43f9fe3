"""A session is made longer, within policy, and no other job is."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime

import httpx
import pytest

from tests.faults import restart_hub
from tests.instance import FILLER, USERS, Instance
from tests.integration.hub.test_privileges import as_the_hub
from tests.visitor import Visitor, session_of
from tests.waiting import until

Visit = Callable[[str], Visitor]
TOKEN = "import os; print(os.environ['JUPYTERHUB_API_TOKEN'])"
SESSION = "0123456789abcdef" * 2


def extend(user: Visitor, minutes: object) -> httpx.Response:
    """Ask the session's own server for more time, as its page does."""
    return user.session("POST", "/portal/clock/extend", json={"minutes": minutes})


def test_a_session_is_extended_and_its_clock_shows_it(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=1, hours=0.5)
    before = user.session("GET", "/portal/clock").json()
    job = portal.job(job_id)
    assert job["TimeLimit"] == "00:30:00"
    assert before["deadline"] == datetime.fromisoformat(job["EndTime"]).timestamp()
    assert before["until"] == before["deadline"] + 4 * 3600
    assert (before["job_id"], before["gpus"]) == (job_id, 1)
    assert before["warning_minutes"] == [30, 10, 2]

    answer = extend(user, 60)
    assert answer.status_code == 200, answer.text
    job = portal.job(job_id)
    assert job["TimeLimit"] == "01:30:00"
    after = user.session("GET", "/portal/clock").json()
    assert after["deadline"] == before["deadline"] + 3600
    assert after["deadline"] == datetime.fromisoformat(job["EndTime"]).timestamp()


def test_a_session_is_not_extended_past_the_partitions_limit(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[1])
    job_id = user.start_and_wait(gpus=0, hours=11.5)
    assert user.session("GET", "/portal/clock").json()["longest_minutes"] == 30
    refusal = extend(user, 31)
    assert refusal.status_code == 409
    assert "30 min more at most" in refusal.json()["message"]
    assert portal.job(job_id)["TimeLimit"] == "11:30:00"
    assert extend(user, 30).status_code == 200
    refusal = extend(user, 1)
    assert "at most 12 hours" in refusal.json()["message"]
    assert portal.job(job_id)["TimeLimit"] == "12:00:00"


def test_a_session_is_extended_so_often_and_no_more(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[2])
    job_id = user.start_and_wait(gpus=0, hours=0.5)
    assert [extend(user, 1).status_code for _ in range(2)] == [200, 200]
    # What was counted is not forgotten.
    restart_hub(portal)
    assert [extend(user, 1).status_code for _ in range(2)] == [200, 409]
    assert "extended 3 times" in extend(user, 1).json()["message"]
    assert portal.job(job_id)["TimeLimit"] == "00:33:00"


def test_a_session_extends_itself_and_nobody_elses(portal: Instance, visit: Visit) -> None:
    mine, other = visit(USERS[0]), visit(USERS[1])
    my_job, other_job = (user.start_and_wait(gpus=0, hours=0.5) for user in (mine, other))
    path = "/api/gpu-session/extend"

    def ask(token: str | None, **request: object) -> int:
        headers = {} if token is None else {"Authorization": f"token {token}"}
        body = {"minutes": 30, **request}
        return portal.hub("POST", path, json=body, headers=headers).status_code

    # Tokens of users are not a session's, and a cookie is no token.
    assert ask(mine.token()) == 403
    assert ask("0" * 32) == 403
    assert ask(None) == 403
    assert mine.api("POST", "/gpu-session/extend", json={"minutes": 30}).status_code == 403
    # A session's token names its session; the body names nothing else.
    token = mine.run(TOKEN).strip()
    assert ask(token, job_id=other_job) == 400
    assert ask(token, user=USERS[1]) == 400
    assert ask(token) == 200
    assert portal.job(my_job)["TimeLimit"] == "01:00:00"
    assert portal.job(other_job)["TimeLimit"] == "00:30:00"
    # And the other user does not get in at this user's server.
    theirs = f"{portal.url}/user/{USERS[0]}/portal/clock"
    headers = {"Authorization": f"token {other.token()}"}
    assert httpx.get(theirs, headers=headers).status_code in (302, 403)
    assert httpx.get(theirs).status_code in (302, 403)


def as_the_operator(portal: Instance, request: object) -> dict[str, object]:
    launcher = portal.settings["slurm"]["launcher"]
    operator = portal.settings["slurm"]["operator"]
    argv = ["/usr/bin/sudo", "-n", "-u", operator, "--", launcher]
    done = as_the_hub(*argv, stdin=json.dumps(request))
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize(
    "request_",
    [
        {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\nid\n"},
        {"verb": "cancel", "session": SESSION},
        {"verb": "list"},
        {"verb": "log", "job_id": 1},
    ],
)
def test_the_operator_extends_and_ends_and_looks_and_no_more(
    portal: Instance, request_: object
) -> None:
    words = "the verbs are: extend, end, jobs, marked, session"
    verbs = {"error": words, "refused": False}
    assert as_the_operator(portal, request_) == verbs


@pytest.mark.parametrize(
    ("comment", "session", "user", "words"),
    [
        (None, SESSION, FILLER, "is not this session's"),
        ("MARK:SESSION", "f" * 32, FILLER, "is not this session's"),
        ("other:SESSION", SESSION, FILLER, "is not this session's"),
        ("x\nMARK:SESSION", SESSION, FILLER, "is not this session's"),
        ("MARK:SESSION\nx", SESSION, FILLER, "is not this session's"),
        ("MARK:SESSION", SESSION, USERS[0], "is no running job of this user"),
        ("MARK:SESSION", SESSION, "root", "is no running job of this user"),
    ],
)
def test_the_operator_extends_no_other_job(
    portal: Instance, comment: str | None, session: str, user: str, words: str
) -> None:
    argv = ["sbatch", "--parsable", "--time=10", "--mem=100M", "--output=/dev/null"]
    argv += ["--job-name=x\nJobId=1", "--wrap=exec sleep 600"]
    if comment is not None:
        text = comment.replace("MARK", portal.mark).replace("SESSION", SESSION)
        argv.append(f"--comment={text}")
    job_id = portal.slurm(*argv, user=FILLER).strip()
    try:
        until(
            lambda: "JobState=RUNNING" in portal.slurm("scontrol", "show", "job", job_id),
            seconds=20,
            what="the job runs",
        )
        order = {"verb": "extend", "session": session, "job_id": int(job_id), "minutes": 60}
        answer = as_the_operator(portal, {**order, "user": user})
        assert words in str(answer.get("error")), answer
        assert "TimeLimit=00:10:00" in portal.slurm("scontrol", "show", "job", job_id)
    finally:
        portal.cancel(job_id)


@pytest.fixture(scope="module")
def job_id(portal: Instance) -> Iterator[str]:
    """The number of a session's job, which nobody may make longer."""
    with session_of(portal, USERS[3], hours=0.5):
        (job_id,) = portal.jobs(user=USERS[3])
        yield job_id


def test_the_operator_keeps_to_the_partitions_limit(portal: Instance, job_id: str) -> None:
    comment = portal.slurm("squeue", "--noheader", f"--jobs={job_id}", "-o", "%k").strip()
    order = {"verb": "extend", "session": comment.partition(":")[2], "job_id": int(job_id)}
    answer = as_the_operator(portal, {**order, "user": USERS[3], "minutes": 12 * 60 + 1})
    assert answer["error"] == "partition sxm2 allows 720 minutes"
    assert portal.job(job_id)["TimeLimit"] == "00:30:00"


def test_slurm_itself_gives_a_user_no_more_time(portal: Instance, job_id: str) -> None:
    argv = ["scontrol", "update", f"JobId={job_id}", "TimeLimit=60"]
    with pytest.raises(RuntimeError, match=r"permission|denied"):
        portal.slurm(*argv, user=USERS[3])
