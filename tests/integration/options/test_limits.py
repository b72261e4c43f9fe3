"""What a group's members may have, and several sessions of one user at once."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest

from jupyterhub_gpu_slurm.options import words
from tests import faults
from tests.instance import LIMITED, USERS, Instance
from tests.pages import how_to
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]
FREE_USER = USERS[1]


def next_job_id(portal: Instance) -> str:
    """Return the number that the next job will get: it shows whether one was submitted."""
    config = portal.slurm("scontrol", "show", "config").splitlines()
    return next(line for line in config if line.startswith("NEXT_JOB_ID"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": 3}, words.too_many_for_one_session(3, most=2)),
        (
            {"gpus": 0, "hours": 5},
            words.too_long(timedelta(hours=5), most=timedelta(hours=4)),
        ),
        ({"gpus": 0, "partition": "shareq"}, words.closed_partition("shareq", "sxm2")),
        ({"gpus": 0, "account": "other"}, words.not_to_choose("Account", "other", "limited")),
        ({"gpus": 0, "qos": "other"}, words.not_to_choose("QOS", "other", "small")),
        (
            {"gpus": 0, "constraint": "other"},
            words.not_to_choose("Node feature", "other", "nvlink"),
        ),
    ],
)
def test_more_than_the_group_may_have_is_refused_and_nothing_is_submitted(
    portal: Instance, visit: Visit, options: dict[str, object], message: str
) -> None:
    user = visit(LIMITED)
    before = next_job_id(portal)
    answer = user.start(**options)
    assert answer.status_code == 400
    assert message in answer.json()["message"]
    assert "Traceback" not in answer.text
    assert user.server() is None
    assert next_job_id(portal) == before


def test_a_script_is_refused_as_the_how_to_says(portal: Instance, visit: Visit) -> None:
    replaced = {
        "curl ": "curl --silent --show-error --insecure ",
        "$TOKEN": visit(LIMITED).token(),
        "$HUB": f"{portal.url}/hub",
        "/ada/": f"/{LIMITED}/",
    }
    line = how_to("offer-choices.md", 0, replaced)
    argv = ["/bin/sh", "-c", line]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    answer = json.loads(done.stdout)
    assert answer["status"] == 400
    assert answer["message"] == words.not_to_choose("Account", "medicine", "limited")


def test_the_form_offers_only_what_the_group_may_have(visit: Visit) -> None:
    # Of a session that never was: the form says so where the last choice is open no more.
    form = visit(LIMITED).http.get(f"/hub/spawn/{LIMITED}/fresh").text
    assert 'value="2"' in form
    assert 'name="gpus" value="3"' not in form
    assert 'value="sxm2"' in form
    assert "shareq" not in form


def test_the_groups_account_and_qos_reach_the_job(portal: Instance, visit: Visit) -> None:
    job_id = visit(LIMITED).start_and_wait(gpus=0)
    assert portal.job(job_id)["Account"] == "limited"
    # Without slurmdbd Slurm knows no QOS and shows none; it is asked for all the same.
    script = portal.slurm("scontrol", "write", "batch_script", job_id, "-").splitlines()
    assert "#SBATCH --account=limited" in script
    assert "#SBATCH --qos=small" in script


def test_others_have_no_account_and_all_partitions(portal: Instance, visit: Visit) -> None:
    user = visit(FREE_USER)
    assert 'value="shareq"' in user.http.get("/hub/spawn").text
    job_id = user.start_and_wait(gpus=0)
    assert portal.job(job_id)["Account"] == "(null)"
    assert "--qos" not in portal.slurm("scontrol", "write", "batch_script", job_id, "-")


def test_of_two_starts_at_once_over_the_total_exactly_one_passes(
    portal: Instance, visit: Visit
) -> None:
    user = visit(LIMITED)
    servers = [user, user.at("second"), user.at("third")]

    async def start_all() -> list[httpx.Response]:
        return await asyncio.gather(
            *(asyncio.to_thread(server.start, gpus=2) for server in servers)
        )

    answers = asyncio.run(start_all())
    assert sorted(answer.status_code // 100 for answer in answers) == [2, 4, 4]
    for answer in answers:
        if answer.status_code == 400:
            assert answer.json()["message"] == words.too_much_held(2, sessions=1, most=3)
    (started,) = [server for server in servers if server.server() is not None]
    started.wait_until_ready()
    assert len(portal.jobs(user=LIMITED)) == 1


def test_two_sessions_at_once_are_usable_and_apart(portal: Instance, visit: Visit) -> None:
    user = visit(LIMITED)
    first_job = user.start_and_wait(gpus=1)
    second = user.at("training")
    second_job = second.start_and_wait(gpus=2)
    assert portal.job(first_job)["JobName"] == f"{portal.mark}-{LIMITED}"
    assert portal.job(second_job)["JobName"] == f"{portal.mark}-{LIMITED}.training"
    ask = "import os; print(os.environ['PORTAL_JOB_ID'], os.environ['JUPYTERHUB_SERVICE_PREFIX'])"
    assert user.run(ask).split() == [first_job, f"/user/{LIMITED}/"]
    assert second.run(ask).split() == [second_job, f"/user/{LIMITED}/training/"]
    for server in (user, second):
        page = server.session("GET", "/tensorboard/?anyway=1", follow_redirects=True)
        assert page.status_code == 200
        assert "tb-relative-root" in page.text
    second.stop()
    assert portal.jobs(user=LIMITED) == [first_job]
    assert user.run("print(6 * 7)").strip() == "42"


def test_sessions_count_together_and_a_stop_frees_what_it_held(
    portal: Instance, visit: Visit
) -> None:
    user = visit(LIMITED)
    second, third = user.at("second"), user.at("third")
    user.start_and_wait(gpus=2)
    second.start_and_wait(gpus=1)
    refused = third.start(gpus=1)
    assert refused.status_code == 400
    assert refused.json()["message"] == words.too_much_held(3, sessions=2, most=3)
    form = user.http.get(f"/hub/spawn/{LIMITED}/third").text
    assert 'name="gpus" value="0"' in form
    assert 'name="gpus" value="1"' not in form
    assert words.held(3, sessions=2, most=3) in form
    second.stop()
    third.start_and_wait(gpus=1)
    assert len(portal.jobs(user=LIMITED)) == 2


def test_a_session_that_waits_in_the_queue_counts(portal: Instance, visit: Visit) -> None:
    user = visit(LIMITED)
    with portal.gpus_taken():
        assert user.start(gpus=2).status_code == 202
        until(lambda: portal.jobs(user=LIMITED), seconds=10, what="the job is in the queue")
        refused = user.at("second").start(gpus=2)
        assert refused.status_code == 400
        assert refused.json()["message"] == words.too_much_held(2, sessions=1, most=3)
        user.stop()
        # What was stopped while it waited is free again.
        assert user.at("second").start(gpus=2).status_code in (201, 202)
        until(lambda: portal.jobs(user=LIMITED), seconds=10, what="the job is in the queue")


def test_what_is_held_is_counted_after_a_restart_of_the_hub(portal: Instance, visit: Visit) -> None:
    user = visit(LIMITED)
    with portal.gpus_taken():
        user.start_and_wait(gpus=0)
        waiting = user.at("waiting")
        assert waiting.start(gpus=2).status_code == 202
        until(lambda: len(portal.jobs(user=LIMITED)) == 2, seconds=10, what="it is in the queue")
        faults.restart_hub(portal)
        refused = user.at("third").start(gpus=2)
        assert refused.status_code == 400
        assert refused.json()["message"] == words.too_much_held(2, sessions=2, most=3)
    # Between the restart and the reconciler's look it is no server.
    until(
        lambda: (waiting.server() or {}).get("ready"),
        seconds=60,
        what="the interrupted start has gone on",
    )
    assert len(portal.jobs(user=LIMITED)) == 2


def test_the_most_sessions_at_once_are_counted(portal: Instance, visit: Visit) -> None:
    user = visit(LIMITED)
    for server in (user, user.at("second"), user.at("third")):
        server.start_and_wait(gpus=0)
    refused = user.at("fourth").start(gpus=0)
    assert refused.status_code == 400
    message = words.too_many_sessions(3, most=3)
    assert refused.json()["message"] == message
    assert message in user.http.get(f"/hub/spawn/{LIMITED}/fourth").text
    assert len(portal.jobs(user=LIMITED)) == 3


@pytest.mark.parametrize("name", ["a%20b", "$(id)", "a%0a%23SBATCH", "A", "-x", "%27;id;%27"])
def test_an_odd_server_name_is_refused(portal: Instance, visit: Visit, name: str) -> None:
    user = visit(LIMITED)
    before = next_job_id(portal)
    assert user.at(name).start(gpus=0).status_code in (400, 404)
    assert next_job_id(portal) == before


def test_an_odd_display_name_is_only_shown(portal: Instance, visit: Visit) -> None:
    user = visit(LIMITED)
    body = {"display_name": "$(id) 'x' #SBATCH", "user_options": {"gpus": 0}}
    answer = user.api("POST", f"/users/{LIMITED}/servers/odd", json=body)
    assert answer.status_code in (201, 202), answer.text
    user.at("odd").wait_until_ready()
    (job_id,) = portal.jobs(user=LIMITED)
    assert portal.job(job_id)["JobName"] == f"{portal.mark}-{LIMITED}.odd"
    assert "$(id)" not in portal.slurm("scontrol", "write", "batch_script", job_id, "-")
