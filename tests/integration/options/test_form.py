"""What the form knows of the real cluster, and when Slurm says that a choice would start."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jupyterhub_gpu_slurm.outlook.forecast import SILENT
from tests import faults
from tests.instance import FILLER, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]


def forecast(user: Visitor, **fields: object) -> dict[str, Any]:
    """Ask as the form's script does."""
    answer = user.api("GET", f"/gpu-session/forecast/{user.name}", params=fields)
    answer.raise_for_status()
    return dict(answer.json())


def available(user: Visitor) -> dict[str, Any]:
    """Return what the form hears of partition sxm2."""
    answer = user.api("GET", f"/gpu-session/availability/{user.name}")
    answer.raise_for_status()
    return next(one for one in answer.json()["partitions"] if one["partition"] == "sxm2")


def test_what_is_free_starts_now(visit: Visit) -> None:
    assert forecast(visit(USERS[0]), gpus=4, hours=1, partition="sxm2")["state"] == "now"


def test_what_must_wait_starts_when_a_job_must_end(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    with portal.gpus_taken() as job_ids:
        first_end = min(
            datetime.fromisoformat(portal.job(job_id)["EndTime"]).astimezone() for job_id in job_ids
        )
        answer = until(
            lambda: (said := forecast(user, gpus=1))["state"] == "later" and said,
            seconds=20,
            what="a forecast",
        )
        start = datetime.fromisoformat(answer["start"])
        assert abs(start - first_end) < timedelta(minutes=2)
        assert start > datetime.now(UTC)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"gpus": 5}, "at most 4"),
        ({"hours": 13}, "at most 12"),
        ({"hours": 12.0001}, "at most 12"),
        ({"gpus": 1, "gpu_type": "h200"}, "Its types are: v100"),
        ({"partition": "admins"}, "not open to you"),
    ],
)
def test_what_is_not_to_be_had_can_never_start(
    visit: Visit, fields: dict[str, object], words: str
) -> None:
    answer = forecast(visit(USERS[0]), **fields)
    assert answer["state"] == "never"
    assert words in answer["why"]


def test_what_slurm_refuses_can_never_start_with_its_words(portal: Instance, visit: Visit) -> None:
    # The portal believes a larger node than Slurm has.
    user = visit(USERS[0])
    with faults.site_file(portal, "c.GpuSlurmSpawner.cores_without_gpu = 41\n"):
        answer = forecast(user, gpus=0)
    assert answer["state"] == "never"
    assert "not available" in answer["why"]


def test_what_only_drained_nodes_could_run_is_not_called_impossible(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    with faults.drained(portal):
        until(lambda: available(user)["free"] == 0, seconds=30, what="nothing is free")
        answer = forecast(user, gpus=1)
    assert answer["state"] == "unknown"
    assert "out of service" in answer["why"]


def test_a_slurmctld_that_does_not_answer_leaves_a_form_without_forecast(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    until(lambda: "free now" in user.note(), seconds=30, what="the form has figures")
    with faults.frozen("slurmctld"):
        # A choice of this test alone: an answer serves for five seconds.
        answer = forecast(user, gpus=3, hours=2)
        assert "free now" in user.note()
    assert answer == {"state": "unknown", "start": None, "why": SILENT}


def test_nothing_of_other_users_is_told(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    with portal.gpus_taken() as job_ids:
        until(lambda: available(user)["free"] == 0, seconds=30, what="all is taken")
        told = [
            user.api("GET", f"/gpu-session/availability/{user.name}").text,
            user.api("GET", f"/gpu-session/forecast/{user.name}", params={"gpus": 1}).text,
        ]
        nodes = [portal.job(job_id)["NodeList"] for job_id in job_ids]
    for text in told:
        assert not [word for word in (FILLER, *nodes) if word in text]


@pytest.mark.parametrize(
    "query", ["gpus=-1", "gpus=1&gpus=2", "fnord=1", "gpus=1%0A%23SBATCH%20--uid=0", "hours=nan"]
)
def test_a_bad_question_is_answered_with_400_and_a_sentence(visit: Visit, query: str) -> None:
    user = visit(USERS[0])
    answer = user.api("GET", f"/gpu-session/forecast/{user.name}?{query}")
    assert answer.status_code == 400
    assert answer.json()["message"].endswith(".")


def test_a_forecast_submits_nothing(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    for gpus in range(5):
        forecast(user, gpus=gpus)
    assert portal.jobs(user=USERS[0]) == []


def test_another_users_form_is_closed(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    for what in ("forecast", "availability"):
        assert user.api("GET", f"/gpu-session/{what}/{USERS[1]}").status_code in (403, 404)
        stranger = portal.hub("GET", f"/api/gpu-session/{what}/{USERS[0]}")
        assert stranger.status_code == 403


def test_what_is_free_is_told_and_follows_the_jobs(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    until(lambda: available(user)["free"] == 12, seconds=30, what="all is free")
    assert available(user)["largest_free"] == 4
    assert [kind["type"] for kind in available(user)["kinds"]] == ["v100"]
    with portal.gpus_taken(nodes=2):
        until(lambda: available(user)["free"] == 4, seconds=30, what="two nodes are taken")
    with portal.gpus_taken(nodes=3):
        until(lambda: available(user)["largest_free"] == 0, seconds=30, what="all is taken")


def test_a_partition_of_others_is_not_told(visit: Visit) -> None:
    user = visit(USERS[0])
    answer = user.api("GET", f"/gpu-session/availability/{user.name}").json()
    names = [one["partition"] for one in answer["partitions"]]
    assert "admins" not in names
    assert "sxm2" in names


def test_many_viewers_cost_one_look_at_the_nodes(portal: Instance, visit: Visit) -> None:
    users = [visit(name) for name in USERS[:4]]
    with faults.counted(portal, "scontrol") as calls:
        for user in users:
            user.log_in()
        with ThreadPoolExecutor(20) as viewers:
            pages = list(viewers.map(lambda number: users[number % 4].note(), range(20)))
        assert all('id="gpu-form-cluster"' in page for page in pages)
        # One question for the nodes and one for the partitions.
        assert 2 <= len(calls()) <= 4


def test_a_type_of_gpu_that_was_chosen_reaches_slurm(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    job = portal.job(user.start_and_wait(gpus=1, gpu_type="v100"))
    assert job["TresPerNode"] == "gres:gpu:v100:1"


def test_the_form_has_everything_without_its_script(visit: Visit) -> None:
    page = visit(USERS[0]).note()
    assert re.search(r'data-gpus="4">\s*(free now|busy now)', page)
    assert '<option value="sxm2"' in page
