"""The start of a session, and the state that it leaves."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.spawner import SpawnException
from prometheus_client import REGISTRY

from jupyterhub_gpu_slurm.errors import CommandFailed, LauncherUnavailable, SubmissionRefused
from jupyterhub_gpu_slurm.options.policy import AcceptedRequest
from jupyterhub_gpu_slurm.options.session_options import SessionOptions
from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session import start as session_start
from jupyterhub_gpu_slurm.session.script import SessionProgram, job_name, render
from tests.unit.spawner.sessions import failure, saved_state, started
from tests.unit.spawner.slurm_stand_in import (
    FAILED,
    IS_CANCELLED,
    NO_ACCOUNT,
    NUMBER,
    PORT,
    RUNS,
    SILENCE,
    UNKNOWN,
    WAITS,
    StandIn,
    job,
)
from tests.unit.spawner.stand_in import spawner_of

FAILURES = "gpu_spawner_session_start_failures_total"


def test_a_start_submits_and_gives_the_address_that_the_session_says(
    spawner: Any, slurm: StandIn
) -> None:
    slurm.words = [WAITS, RUNS]
    spawner._endings[spawner._log_name] = "an old ending"
    assert started(spawner) == f"http://10.0.0.1:{PORT}"
    (order,) = slurm.orders
    name, username, session, script, session_input = order
    assert (name, username, session) == ("submit", "ada", spawner.session.id)
    assert len(str(session)) == 32
    assert f"#SBATCH --job-name={job_name('portal', 'ada', '')}\n" in str(script)
    assert "#SBATCH --gres=gpu:2\n" in str(script)
    assert spawner.api_token in str(session_input)
    assert spawner.api_token not in str(script)
    assert spawner.session.is_ready
    assert spawner._endings == {}
    assert (spawner.ip, spawner.job_id) == ("0.0.0.0", f"{NUMBER}")  # noqa: S104


def test_an_address_of_ipv6_stands_in_brackets(
    spawner: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def address(*_: object) -> str:
        return "fd00::1"

    slurm.words = [RUNS]
    monkeypatch.setattr(session_start.SessionStart, "address", address)
    assert started(spawner) == f"http://[fd00::1]:{PORT}"


def test_a_directory_that_does_not_know_the_user_now_shortens_no_session(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def groups(*_: object) -> set[str]:
        return set()

    monkeypatch.setattr(SessionOptions, "groups", groups)
    session.idle_minutes, session.group_idle_minutes = 60, {"trusted": 0}
    assert asyncio.run(session.idle_limit()) == timedelta(minutes=60)
    session.record.state = replace(session.session, groups=("trusted",))
    assert asyncio.run(session.idle_limit()) is None


def test_what_a_start_leaves_is_enough_for_another_hub(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [RUNS]
    started(spawner)
    token = orm.APIToken.find(spawner.user.db, spawner.api_token)
    state = saved_state(spawner)
    assert state["session_id"] == spawner.session.id
    assert state["session_options"] == {"gpus": 2}
    assert (state["job_id"], state["session_port"]) == (f"{NUMBER}", PORT)
    assert (state["token_id"], state["client_secret"]) == (token.id, "hash")


@pytest.fixture
def student(spawner: Any) -> Any:
    """The spawner of a user in the group ``students``."""
    spawner.user.groups.append(orm.Group(name="students"))
    return spawner


def set_overrides(spawner: Any, **values: object) -> None:
    """Have a function give the overrides, as JupyterHub allows."""
    given = {"01": {"groups": ["students"], "spawner_override": values}}
    spawner.group_overrides = lambda _: given


def test_an_override_of_a_group_that_would_have_no_effect_ends_the_start(student: Any) -> None:
    set_overrides(student, mem_limit="2G", default_gpus=3)
    with pytest.raises(SpawnException) as raised:
        asyncio.run(student.apply_group_overrides())
    assert "mem_limit has no effect: it comes with the GPUs" in str(raised.value.log_message)
    assert "mem_limit" not in str(raised.value.jupyterhub_message)
    assert raised.value.reason == "configuration"
    assert student.default_gpus != 3


def test_other_overrides_of_a_group_are_applied(student: Any) -> None:
    set_overrides(student, default_gpus=3)
    # The form came first.
    assert student.session_options is not None
    asyncio.run(student.apply_group_overrides())
    assert student.default_gpus == 3
    assert student.session_options._site.defaults.gpus == 3


def test_a_groups_limits_hold_for_the_next_start(student: Any) -> None:
    start = student.session_start
    set_overrides(student, queue_timeout=60.0)
    asyncio.run(student.apply_group_overrides())
    assert student.session_start is start
    assert start._limits().queue == 60.0


def test_the_sessions_name_is_kept_before_anything_is_submitted(
    spawner: Any, slurm: StandIn
) -> None:
    seen: list[dict[str, Any]] = []
    slurm.while_submitting = lambda: seen.append(saved_state(spawner))
    slurm.words = [RUNS]
    started(spawner)
    (state,) = seen
    assert state["session_id"] == spawner.session.id
    assert "job_id" not in state


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[SessionProgram]:
    """What is written into the jobs' scripts."""
    written: list[SessionProgram] = []

    def look(name: str, request: AcceptedRequest, program: SessionProgram, *more: Any) -> str:
        written.append(program)
        return render(name, request, program, *more)

    monkeypatch.setattr("jupyterhub_gpu_slurm.spawner.render", look)
    return written


def test_the_session_is_told_where_its_hub_is(
    spawner: Any, slurm: StandIn, programs: list[SessionProgram]
) -> None:
    spawner.session_input = {"server": "lab"}
    slurm.words = [RUNS]
    started(spawner)
    (program,) = programs
    assert program.python == "/opt/session/bin/python"
    said = json.loads(json.dumps(program.session_input))
    assert said["server"] == "lab"
    assert "image" not in said
    environment = said["environment"]
    # slurmd says where its node has it: without a file of its own, in /run/slurm/conf.
    assert "SLURM_CONF" not in environment
    address = "http://hub.example.org:8081/hub/api/gpu-session/port"
    assert environment["PORTAL_PORT_CALLBACK_URL"] == address
    assert environment["JUPYTERHUB_API_TOKEN"] == spawner.api_token


@pytest.mark.parametrize(
    "settings",
    [
        {"hub_connect_url": "http://10.0.0.9:18081"},
        {"environment": {"JUPYTERHUB_API_URL": "http://10.0.0.9:18081/hub/api/"}},
    ],
)
def test_the_session_reports_its_port_where_it_reaches_the_hub(
    spawner: Any, slurm: StandIn, programs: list[SessionProgram], settings: dict[str, Any]
) -> None:
    for name, value in settings.items():
        setattr(spawner, name, value)
    slurm.words = [RUNS]
    started(spawner)
    environment = json.loads(programs[0].input_text())["environment"]
    address = "http://10.0.0.9:18081/hub/api"
    assert environment["JUPYTERHUB_API_URL"].rstrip("/") == address
    assert environment["PORTAL_PORT_CALLBACK_URL"] == f"{address}/gpu-session/port"


def test_options_of_batchspawner_hold_where_nobody_says_otherwise(slurm: StandIn) -> None:
    options = {
        "req_partition": "sxm2",
        "req_runtime": "2:00:00",
        "req_account": "physics",
        "req_qos": "high",
        "req_reservation": "course",
        "req_options": "--constraint=v100|a100 --nice=10",
    }
    slurm.words = [RUNS]
    settings = {**options, "session_python": "/opt/session/bin/python"}
    with spawner_of("grace", settings) as spawner:
        started(spawner)
    directives = [line for line in str(slurm.orders[0][3]).split("\n") if "#SBATCH" in line]
    for words in ("partition=sxm2", "time=120", "account=physics", "qos=high"):
        assert f"#SBATCH --{words}" in directives
    for words in ("reservation=course", "constraint=v100|a100", "nice=10"):
        assert f"#SBATCH --{words}" in directives


def test_limits_of_the_users_groups_come_before_them(slurm: StandIn) -> None:
    settings = {
        "req_account": "physics",
        "req_reservation": "course",
        "default_limits": {"reservation": "all"},
        "group_limits": {"daemon": {"account": "biology"}},
        "session_python": "/opt/session/bin/python",
    }
    slurm.words = [RUNS]
    with spawner_of("daemon", settings) as spawner:
        started(spawner)
    script = str(slurm.orders[0][3])
    assert "#SBATCH --account=biology\n" in script
    assert "#SBATCH --reservation=all\n" in script


def test_an_image_is_given_to_the_session_as_the_site_names_it(
    spawner: Any, slurm: StandIn, programs: list[SessionProgram]
) -> None:
    image = {"title": "R", "path": "/images/r.sif"}
    spawner.session_images = {"r": image}
    spawner.user_options = {"gpus": 0, "image": "r"}
    slurm.words = [RUNS]
    started(spawner)
    assert programs[0].session_input["image"] == image


def test_with_tls_the_address_says_so(
    spawner: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawner.certificate_issuer = SimpleNamespace(issue=lambda *about: {"key": "PEM"})
    slurm.words = [RUNS]
    monkeypatch.setattr(spawner, "get_env", lambda: {"JUPYTERHUB_API_URL": spawner.hub.api_url})
    spawner.internal_ssl = True
    assert started(spawner) == f"https://10.0.0.1:{PORT}"


def test_a_node_that_is_in_no_partition_is_reached_by_its_name(
    spawner: Any, slurm: StandIn
) -> None:
    slurm.words = [job("RUNNING", "node099")]
    assert started(spawner) == f"http://node099:{PORT}"


def test_the_address_waits_for_slurm_to_name_the_node(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [UNKNOWN, UNKNOWN, job("RUNNING", None), RUNS]
    slurm.while_submitting = lambda: spawner.take_port(PORT)
    assert started(spawner, says_port=False) == f"http://10.0.0.1:{PORT}"
    # A new answer each time.
    assert slurm.ages[-1] == 0


def test_a_session_that_ends_before_slurm_names_its_node(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [job("FAILED", None)]
    with pytest.raises(SpawnException) as raised:
        started(spawner)
    assert "FAILED" in raised.value.jupyterhub_message


@pytest.mark.parametrize(
    "refusal",
    [
        NO_ACCOUNT,
        LauncherUnavailable("The portal cannot act on your behalf."),
        SubmissionRefused("Your account is closed."),
    ],
)
def test_a_refused_submission_leaves_nothing_to_look_for(
    spawner: Any, slurm: StandIn, refusal: Any
) -> None:
    slurm.failures = [refusal]
    counted = {"reason": refusal.reason}
    before = REGISTRY.get_sample_value(FAILURES, counted) or 0
    error = failure(spawner)
    assert (error.jupyterhub_message, error.status_code) == (str(refusal), 503)
    assert REGISTRY.get_sample_value(FAILURES, counted) == before + 1
    assert spawner.session.id == ""
    assert spawner._endings == {}


def test_a_submission_that_slurm_does_not_answer_is_looked_for(
    spawner: Any, slurm: StandIn
) -> None:
    slurm.failures = [SILENCE]
    failure(spawner)
    assert spawner.session.id == saved_state(spawner)["session_id"] != ""
    slurm.orders.clear()
    slurm.words = [IS_CANCELLED]
    asyncio.run(spawner.stop())
    assert slurm.orders == [("cancel", "ada", spawner.session.id)]


def test_what_is_wrong_in_the_options_submits_nothing(spawner: Any, slurm: StandIn) -> None:
    spawner.user_options = {"gpus": 99}
    error = failure(spawner)
    assert error.status_code == 400
    assert slurm.orders == []


@pytest.mark.parametrize("state", ["FAILED", "GONE", "COMPLETING", "CANCELLED"])
def test_a_job_that_is_over_ends_the_start_and_says_why(
    spawner: Any, slurm: StandIn, state: str
) -> None:
    slurm.words, slurm.log = [WAITS, RUNS, job(state)], ["No module named x"]
    error = failure(spawner)
    assert error.jupyterhub_message == endings.not_started(endings.ended(job(state)))
    for said in (f"ada {NUMBER}", "No module named x"):
        assert said in error.jupyterhub_html_message
    assert spawner._endings[spawner._log_name] == error.jupyterhub_message
    assert slurm.forgotten == [NUMBER]


def test_a_start_that_failed_takes_no_port_any_more(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [FAILED]
    failure(spawner)
    assert not spawner.take_port(PORT)
    assert "session_port" not in saved_state(spawner)


def test_a_log_that_cannot_be_had_is_no_second_failure(
    spawner: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    slurm.words, slurm.log = [FAILED], CommandFailed("No.", detail="the log is not there")
    message = failure(spawner).jupyterhub_message
    assert message == endings.not_started(endings.ended(FAILED))
    assert f"No log of job {NUMBER}: the log is not there" in caplog.text


def test_a_server_that_never_answers_is_given_up(spawner: Any, slurm: StandIn) -> None:
    spawner.launch_timeout, spawner.queue_timeout = 0.05, 3600
    slurm.words, slurm.log = [WAITS, RUNS], ["still importing"]
    error = failure(spawner)
    assert error.jupyterhub_message == endings.silent(f"{NUMBER}", "node001", 0.05)
    assert "still importing" in error.jupyterhub_html_message


def test_the_time_in_the_queue_is_not_the_servers(spawner: Any, slurm: StandIn) -> None:
    spawner.launch_timeout, spawner.queue_timeout = 0.05, 0.36
    slurm.words = [WAITS]
    assert failure(spawner).jupyterhub_message == endings.waited_too_long(f"{NUMBER}", 0.36)


def test_a_job_that_runs_is_not_given_up_for_the_queue(spawner: Any, slurm: StandIn) -> None:
    spawner.launch_timeout, spawner.queue_timeout = 0.2, 0.001
    slurm.words = [RUNS]
    assert "did not answer" in failure(spawner).jupyterhub_message


def test_slurm_is_asked_less_often_once_the_wait_is_long(
    spawner: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.words = [WAITS] * 3 + [RUNS] * 2 + [FAILED]
    failure(spawner)
    assert slurm.ages == [1.0] * 6
    slurm.ages.clear()
    monkeypatch.setattr(session_start, "_SHORT_WAIT_SECONDS", 0.0)
    slurm.words = [WAITS] * 3 + [RUNS] * 2 + [FAILED]
    failure(spawner)
    # Again in haste as soon as the job runs.
    assert slurm.ages[-2:] == [1.0, 1.0]
    assert 5.0 in slurm.ages[:4]


def test_a_slurm_that_is_silent_for_a_while_ends_no_start(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [UNKNOWN, WAITS, UNKNOWN, RUNS]
    assert started(spawner) == f"http://10.0.0.1:{PORT}"


def test_a_page_that_opens_before_the_sessions_size_is_decided_is_told_of_fewer_gpus(
    spawner: Any,
) -> None:
    async def two() -> list[dict[str, Any]]:
        events = spawner.progress()
        first = await anext(events)
        spawner.record.note(gpus=8)
        spawner.job.last = WAITS
        return [first, await anext(events)]

    first, second = asyncio.run(two())
    assert "fewer_free" not in first
    assert second["fewer_free"] == 4


@pytest.mark.parametrize(
    "setting",
    [
        {"group_limits": {"ml": {"reservation": "course"}}},
        {"default_limits": {"reservation": "course"}},
        {"req_reservation": "course"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_a_site_whose_reservation_a_session_waits_for_offers_no_fewer_gpus_of_others(
    spawner: Any, setting: dict[str, Any]
) -> None:
    for name, value in setting.items():
        setattr(spawner, name, value)
    spawner.record.note(gpus=8, groups=("ml",))
    spawner.job.last = WAITS
    assert "fewer_free" not in asyncio.run(anext(spawner.progress()))


def test_the_page_hears_of_the_job(spawner: Any) -> None:
    spawner.job.last = WAITS
    event = asyncio.run(anext(spawner.progress()))
    assert "waiting in the queue" in event["message"]
