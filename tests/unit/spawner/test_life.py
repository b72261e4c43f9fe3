"""The life of a session, from the order to its end; a stand-in for Slurm."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.spawner import SpawnException
from prometheus_client import REGISTRY

from jupyterhub_gpu_slurm import spawner as gpu_spawner
from jupyterhub_gpu_slurm.errors import (
    AccountUnavailable,
    CommandFailed,
    CommandTimedOut,
    SubmissionRefused,
    UnreadableOutput,
)
from jupyterhub_gpu_slurm.options.policy import AcceptedRequest
from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.session import job as session_job
from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews
from jupyterhub_gpu_slurm.session.script import SessionProgram, job_name, render
from jupyterhub_gpu_slurm.session.state import SessionState
from jupyterhub_gpu_slurm.slurm.records import Job
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from tests.unit.spawner.stand_in import NUMBER, StandIn, spawner_of, stand_in_for_slurm

PORT = 40123
FAILURES = "gpu_spawner_session_start_failures_total"
SESSION = "a" * 32
SILENCE = CommandTimedOut("Slurm does not answer.")
NO_ACCOUNT = AccountUnavailable("The directory does not know ada.")


def job(state: str, node: str | None = "node001", reason: str | None = None) -> Job:
    return Job(NUMBER, state, reason, "ada", "sxm2", node)


WAITS, RUNS = job("PENDING", None, "Priority"), job("RUNNING")
COMPLETES, IS_CANCELLED, FAILED = job("COMPLETING"), job("CANCELLED"), job("FAILED")
UNKNOWN = Job(NUMBER, "")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody wait between two looks."""
    monkeypatch.setattr(gpu_spawner, "STARTING_INTERVAL", 0.001)
    for name in ("STARTING_INTERVAL", "_ENDING_INTERVAL", "_LATE_COMER_SECONDS"):
        monkeypatch.setattr(session_job, name, 0.001)
    monkeypatch.setattr(session_job, "_RETRY_SECONDS", (0,))
    monkeypatch.setattr(session_job, "_LAST_WORD_SECONDS", 0.1)
    monkeypatch.setattr(GpuSlurmSpawner, "_endings", {})


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return stand_in_for_slurm(monkeypatch)


@pytest.fixture
def spawner(slurm: StandIn) -> Iterator[Any]:
    """The spawner of a user who asks for two GPUs."""
    with spawner_of("ada", {"session_python": "/opt/session/bin/python"}) as spawner:
        spawner.user_options = {"gpus": 2}
        spawner.log.propagate = True
        yield spawner


@pytest.fixture
def session(spawner: Any) -> Any:
    """The spawner of a session that can be used."""
    spawner.load_state({"session_id": SESSION, "job_id": f"{NUMBER}", "is_ready": True})
    return spawner


def started(spawner: Any, slurm: StandIn, *, says_port: bool = True) -> str:
    """Start; the session says its port once its job is submitted."""

    async def start() -> str:
        starting = asyncio.create_task(spawner.start())
        while says_port and not starting.done():
            if spawner.job_id and spawner.take_port(PORT):
                break
            await asyncio.sleep(0.001)
        return str(await asyncio.wait_for(starting, 20))

    return asyncio.run(start())


def failure(spawner: Any, slurm: StandIn) -> SpawnException:
    """Return how a start fails whose session never says its port."""
    with pytest.raises(SpawnException) as raised:
        started(spawner, slurm, says_port=False)
    return raised.value


def kept(spawner: Any) -> dict[str, Any]:
    """Return what a hub would find that is started anew."""
    return dict(spawner.orm_spawner.state)


# --- the start ---


def test_a_start_submits_and_gives_the_address_that_the_session_says(
    spawner: Any, slurm: StandIn
) -> None:
    slurm.words = [WAITS, RUNS]
    spawner._endings[spawner._log_name] = "an old ending"
    assert started(spawner, slurm) == f"http://10.0.0.1:{PORT}"
    (order,) = slurm.orders
    name, username, session, script = order
    assert (name, username, session) == ("submit", "ada", spawner.session.id)
    assert len(str(session)) == 32
    assert f"#SBATCH --job-name={job_name('portal', 'ada', '')}\n" in str(script)
    assert "#SBATCH --gres=gpu:2\n" in str(script)
    assert spawner.session.is_ready
    assert spawner._endings == {}
    assert (spawner.ip, spawner.job_id) == ("0.0.0.0", f"{NUMBER}")  # noqa: S104


def test_what_a_start_leaves_is_enough_for_another_hub(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [RUNS]
    started(spawner, slurm)
    token = orm.APIToken.find(spawner.user.db, spawner.api_token)
    state = kept(spawner)
    assert state["session_id"] == spawner.session.id
    assert state["session_options"] == {"gpus": 2}
    assert (state["job_id"], state["session_port"]) == (f"{NUMBER}", PORT)
    assert (state["token_id"], state["client_secret"]) == (token.id, "hash")


def test_the_sessions_name_is_kept_before_anything_is_submitted(
    spawner: Any, slurm: StandIn
) -> None:
    seen: list[dict[str, Any]] = []
    slurm.while_submitting = lambda: seen.append(kept(spawner))
    slurm.words = [RUNS]
    started(spawner, slurm)
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


def test_the_session_is_told_where_its_hub_and_its_slurm_are(
    spawner: Any, slurm: StandIn, programs: list[SessionProgram]
) -> None:
    spawner.slurm_conf, spawner.session_input = "/etc/slurm/slurm.conf", {"server": "lab"}
    slurm.words = [RUNS]
    started(spawner, slurm)
    (program,) = programs
    assert program.python == "/opt/session/bin/python"
    said = json.loads(json.dumps(program.session_input))
    assert said["server"] == "lab"
    assert "image" not in said
    environment = said["environment"]
    assert environment["SLURM_CONF"] == "/etc/slurm/slurm.conf"
    address = "http://hub.example.org:8081/hub/api/gpu-session/port"
    assert environment["PORTAL_PORT_CALLBACK_URL"] == address
    assert environment["JUPYTERHUB_API_TOKEN"] == spawner.api_token


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
        started(spawner, slurm)
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
        started(spawner, slurm)
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
    started(spawner, slurm)
    assert programs[0].session_input["image"] == image


def test_with_tls_the_address_says_so(
    spawner: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawner.certificate_issuer = SimpleNamespace(issue=lambda *about: {"key": "PEM"})
    slurm.words = [RUNS]
    monkeypatch.setattr(spawner, "get_env", dict)
    spawner.internal_ssl = True
    assert started(spawner, slurm) == f"https://10.0.0.1:{PORT}"


def test_a_node_that_is_in_no_partition_is_reached_by_its_name(
    spawner: Any, slurm: StandIn
) -> None:
    slurm.words = [job("RUNNING", "node099")]
    assert started(spawner, slurm) == f"http://node099:{PORT}"


def test_the_address_waits_for_slurm_to_name_the_node(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [UNKNOWN, UNKNOWN, job("RUNNING", None), RUNS]
    slurm.while_submitting = lambda: spawner.take_port(PORT)
    assert started(spawner, slurm, says_port=False) == f"http://10.0.0.1:{PORT}"
    # A new answer each time.
    assert slurm.ages[-1] == 0


def test_a_session_that_ends_before_slurm_names_its_node(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [job("FAILED", None)]
    with pytest.raises(SpawnException) as raised:
        started(spawner, slurm)
    assert "FAILED" in raised.value.jupyterhub_message


@pytest.mark.parametrize("refusal", [NO_ACCOUNT, SubmissionRefused("Your account is closed.")])
def test_a_refused_submission_leaves_nothing_to_look_for(
    spawner: Any, slurm: StandIn, refusal: Any
) -> None:
    slurm.failures = [refusal]
    counted = {"reason": refusal.reason}
    before = REGISTRY.get_sample_value(FAILURES, counted) or 0
    error = failure(spawner, slurm)
    assert (error.jupyterhub_message, error.status_code) == (str(refusal), 503)
    assert REGISTRY.get_sample_value(FAILURES, counted) == before + 1
    assert spawner.session.id == ""
    assert spawner._endings == {}


def test_a_submission_that_slurm_does_not_answer_is_looked_for(
    spawner: Any, slurm: StandIn
) -> None:
    slurm.failures = [SILENCE]
    failure(spawner, slurm)
    assert spawner.session.id == kept(spawner)["session_id"] != ""
    slurm.orders.clear()
    slurm.words = [IS_CANCELLED]
    asyncio.run(spawner.stop())
    assert slurm.orders == [("cancel", "ada", spawner.session.id)]


def test_what_is_wrong_in_the_options_submits_nothing(spawner: Any, slurm: StandIn) -> None:
    spawner.user_options = {"gpus": 99}
    error = failure(spawner, slurm)
    assert error.status_code == 400
    assert slurm.orders == []


@pytest.mark.parametrize("state", ["FAILED", "GONE", "COMPLETING", "CANCELLED"])
def test_a_job_that_is_over_ends_the_start_and_says_why(
    spawner: Any, slurm: StandIn, state: str
) -> None:
    slurm.words, slurm.log = [WAITS, RUNS, job(state)], ["No module named x"]
    error = failure(spawner, slurm)
    assert error.jupyterhub_message == endings.not_started(endings.ended(job(state)))
    for said in (f"ada {NUMBER}", "No module named x"):
        assert said in error.jupyterhub_html_message
    assert spawner._endings[spawner._log_name] == error.jupyterhub_message
    assert slurm.forgotten == [NUMBER]


def test_a_log_that_cannot_be_had_is_no_second_failure(
    spawner: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    slurm.words, slurm.log = [FAILED], CommandFailed("No.", detail="the log is not there")
    message = failure(spawner, slurm).jupyterhub_message
    assert message == endings.not_started(endings.ended(FAILED))
    assert f"No log of job {NUMBER}: the log is not there" in caplog.text


def test_a_server_that_never_answers_is_given_up(spawner: Any, slurm: StandIn) -> None:
    spawner.launch_timeout, spawner.queue_timeout = 0.05, 3600
    slurm.words, slurm.log = [WAITS, RUNS], ["still importing"]
    error = failure(spawner, slurm)
    assert error.jupyterhub_message == endings.silent(f"{NUMBER}", "node001", 0.05)
    assert "still importing" in error.jupyterhub_html_message


def test_the_time_in_the_queue_is_not_the_servers(spawner: Any, slurm: StandIn) -> None:
    spawner.launch_timeout, spawner.queue_timeout = 0.05, 0.36
    slurm.words = [WAITS]
    message = failure(spawner, slurm).jupyterhub_message
    assert message == endings.waited_too_long(f"{NUMBER}", 0.36)


def test_a_job_that_runs_is_not_given_up_for_the_queue(spawner: Any, slurm: StandIn) -> None:
    spawner.launch_timeout, spawner.queue_timeout = 0.2, 0.001
    slurm.words = [RUNS]
    assert "did not answer" in failure(spawner, slurm).jupyterhub_message


def test_slurm_is_asked_less_often_once_the_wait_is_long(
    spawner: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.words = [WAITS] * 3 + [RUNS] * 2 + [FAILED]
    failure(spawner, slurm)
    assert slurm.ages == [1.0] * 6
    slurm.ages.clear()
    monkeypatch.setattr(session_job, "_SHORT_WAIT_SECONDS", 0.0)
    slurm.words = [WAITS] * 3 + [RUNS] * 2 + [FAILED]
    failure(spawner, slurm)
    # Again in haste as soon as the job runs.
    assert slurm.ages[-2:] == [1.0, 1.0]
    assert 5.0 in slurm.ages[:4]


def test_a_slurm_that_is_silent_for_a_while_ends_no_start(spawner: Any, slurm: StandIn) -> None:
    slurm.words = [UNKNOWN, WAITS, UNKNOWN, RUNS]
    assert started(spawner, slurm) == f"http://10.0.0.1:{PORT}"


# --- the port ---


def test_a_port_is_taken_once(spawner: Any, slurm: StandIn) -> None:
    assert spawner.take_port(PORT) is False
    slurm.words = [RUNS]
    started(spawner, slurm)
    assert spawner.take_port(PORT + 1) is False
    assert spawner.session.port == kept(spawner)["session_port"] == PORT


# --- taking over ---


@pytest.fixture
def interrupted(spawner: Any) -> Any:
    """The spawner of a start that the hub's end interrupted."""
    state = {"session_id": SESSION, "session_options": {"gpus": 2}, "client_secret": "first"}
    spawner.load_state(state)
    return spawner


def test_an_interrupted_start_goes_on_with_its_job(interrupted: Any, slurm: StandIn) -> None:
    slurm.listed, slurm.words = {7: "b" * 32, NUMBER: SESSION}, [RUNS]
    assert interrupted.will_resume
    assert started(interrupted, slurm) == f"http://10.0.0.1:{PORT}"
    assert slurm.orders == [("sessions", "ada")]
    assert interrupted.orm_spawner.oauth_client.secret == "first"
    assert not interrupted.will_resume
    assert kept(interrupted)["job_id"] == f"{NUMBER}"


@pytest.mark.parametrize("says_it", ["before", "meanwhile"])
def test_a_port_that_comes_while_it_is_looked_for_is_heard(
    interrupted: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch, says_it: str
) -> None:
    listed = slurm.sessions

    async def sessions(username: str) -> dict[int, str]:
        if says_it == "meanwhile":
            assert interrupted.take_port(PORT)
        return await listed(username)

    if says_it == "before":
        assert interrupted.take_port(PORT)
    monkeypatch.setattr(slurm, "sessions", sessions)
    slurm.listed, slurm.words = {NUMBER: SESSION}, [RUNS]
    assert started(interrupted, slurm, says_port=False) == f"http://10.0.0.1:{PORT}"


def test_one_whose_job_is_not_there_starts_anew(interrupted: Any, slurm: StandIn) -> None:
    slurm.listed, slurm.words = {7: "b" * 32}, [RUNS]
    started(interrupted, slurm)
    assert slurm.told()[-1] == "submit"
    assert interrupted.session.id != SESSION


def test_one_that_is_wanted_otherwise_is_cancelled_first(interrupted: Any, slurm: StandIn) -> None:
    interrupted.user_options = {"gpus": 1}
    slurm.words = [RUNS]
    old = orm.APIToken.find(interrupted.user.db, interrupted.user.new_api_token())
    interrupted.session, number = replace(interrupted.session, token_id=old.id), old.id
    started(interrupted, slurm)
    assert slurm.orders[0] == ("cancel", "ada", SESSION)
    assert slurm.told()[-1] == "submit"
    assert kept(interrupted)["session_options"] == {"gpus": 1}
    # The token of the one before is good for nothing.
    assert interrupted.user.db.get(orm.APIToken, number) is None


def test_it_is_taken_over_once_slurm_answers(interrupted: Any, slurm: StandIn) -> None:
    slurm.failures, slurm.listed, slurm.words = [SILENCE] * 2, {NUMBER: SESSION}, [RUNS]
    started(interrupted, slurm)
    assert slurm.told() == ["sessions"] * 3


# --- how it is ---


def polled(spawner: Any) -> int | None:
    return asyncio.run(asyncio.wait_for(spawner.poll(), 10))  # type: ignore[no-any-return]


def test_what_was_never_started_is_not_there(spawner: Any) -> None:
    assert polled(spawner) == 0


def test_an_interrupted_start_is_no_server_yet(interrupted: Any) -> None:
    assert polled(interrupted) == 1


def test_a_submission_without_a_number_is_perhaps_a_job(spawner: Any, slurm: StandIn) -> None:
    spawner.session, spawner.job_id = SessionState(SESSION), ""
    assert polled(spawner) is None
    assert slurm.ages == []


@pytest.mark.parametrize("said", [RUNS, UNKNOWN, job("SUSPENDED"), job("a word of tomorrow")])
def test_a_session_lives_as_long_as_slurm_does_not_say_otherwise(
    session: Any, slurm: StandIn, said: Job
) -> None:
    slurm.words = [said]
    assert polled(session) is None
    assert session._endings == {}


@pytest.mark.parametrize(
    ("said", "code"), [(FAILED, 1), (IS_CANCELLED, 0), (job("COMPLETED"), 0), (job("TIMEOUT"), 1)]
)
def test_a_session_that_is_over_leaves_how_it_ended(
    session: Any, slurm: StandIn, said: Job, code: int
) -> None:
    slurm.words = [said]
    assert polled(session) == code
    assert session._endings[session._log_name] == endings.last_session(endings.ended(said))
    assert slurm.forgotten == [NUMBER]
    slurm.words = [RUNS]
    assert polled(session) == code  # an end is an end


def test_slurms_last_word_is_waited_for(session: Any, slurm: StandIn) -> None:
    slurm.words = [COMPLETES, COMPLETES, job("OUT_OF_MEMORY")]
    assert polled(session) == 1
    assert slurm.ages == [None, 0, 0]
    assert "OUT_OF_MEMORY" in session._endings[session._log_name]


def test_but_not_for_ever(session: Any, slurm: StandIn) -> None:
    slurm.words = [COMPLETES]
    assert polled(session) == 1
    assert "Job 12 is over (COMPLETING)" in session._endings[session._log_name]


def test_a_session_back_in_the_queue_is_cancelled(session: Any, slurm: StandIn) -> None:
    slurm.words = [WAITS]
    assert polled(session) == 1
    assert slurm.orders == [("cancel", "ada", SESSION)]
    assert slurm.forgotten == [NUMBER]
    assert endings.requeued(f"{NUMBER}") in session._endings[session._log_name]
    assert polled(session) == 1


def test_and_again_if_slurm_did_not_answer(session: Any, slurm: StandIn) -> None:
    slurm.words, slurm.failures = [WAITS], [SILENCE]
    assert polled(session) is None
    assert session._endings == {}
    assert polled(session) == 1


def test_a_start_that_waits_is_not_back_in_the_queue(spawner: Any, slurm: StandIn) -> None:
    spawner.session, spawner.job_id = SessionState(SESSION), f"{NUMBER}"
    slurm.words = [WAITS]
    assert polled(spawner) is None
    assert slurm.orders == []


def test_the_observer_hears_how_it_ended(session: Any, slurm: StandIn) -> None:
    heard: list[SessionNews] = []
    session.session_observer = heard.append
    slurm.words = [RUNS, job("TIMEOUT")]
    assert polled(session) is None
    polled(session)
    assert [news.ending for news in heard] == [None, Ending.TIME_LIMIT]
    assert {news.session_id for news in heard} == {SESSION}
    assert heard[-1].node == "node001"


# --- the end ---


def stopped(spawner: Any, *, now: bool = False) -> None:
    how = {"now": True} if now else {}
    asyncio.run(asyncio.wait_for(spawner.stop(**how), 10))


def test_a_stop_waits_until_the_node_is_free(session: Any, slurm: StandIn) -> None:
    slurm.words = [RUNS, COMPLETES, UNKNOWN, IS_CANCELLED]
    stopped(session)
    assert slurm.orders == [("cancel", "ada", SESSION)]
    assert slurm.ages == [0, 0, 0, 0]
    assert slurm.forgotten == [NUMBER]


@pytest.mark.parametrize("last", [IS_CANCELLED, Job(NUMBER, "GONE")])
def test_it_is_free_when_slurm_says_so_or_knows_nothing(
    session: Any, slurm: StandIn, last: Job
) -> None:
    slurm.words = [COMPLETES, last]
    stopped(session)
    assert len(slurm.ages) == 2


def test_a_stop_in_haste_does_not_wait(session: Any, slurm: StandIn) -> None:
    slurm.words = [RUNS]
    stopped(session, now=True)
    assert (slurm.told(), slurm.ages) == (["cancel"], [])


def test_a_node_that_does_not_come_free_is_said_and_left(
    session: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    session.end_timeout, slurm.words = 0.01, [COMPLETES]
    stopped(session)
    assert "still on its node after 0.01 s" in caplog.text


def test_nothing_to_stop_asks_nothing(spawner: Any, slurm: StandIn) -> None:
    stopped(spawner)
    assert slurm.orders == []


@pytest.mark.parametrize(("found", "looks"), [([], 5), ([NUMBER], 1)])
def test_a_job_without_a_number_is_looked_for_some_times(
    spawner: Any, slurm: StandIn, found: list[int], looks: int
) -> None:
    spawner.session, spawner.job_id, slurm.cancelled = SessionState(SESSION), "", found
    stopped(spawner)
    assert slurm.orders == [("cancel", "ada", SESSION)] * looks
    assert slurm.forgotten == []


def test_the_operator_ends_the_session_of_an_account_that_is_gone(
    session: Any, slurm: StandIn
) -> None:
    session.slurm_operator, slurm.failures, slurm.words = "slurm", [NO_ACCOUNT], [IS_CANCELLED]
    stopped(session)
    assert slurm.orders[1:] == [("end", "slurm", "ada", SESSION, NUMBER)]
    assert slurm.forgotten == [NUMBER]


@pytest.mark.parametrize("operator", ["", "slurm"])
def test_a_stop_that_nobody_may_carry_out_is_left_to_the_keeper(
    session: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture, operator: str
) -> None:
    session.slurm_operator = operator
    slurm.failures, slurm.operator_failures = [NO_ACCOUNT] * 9, [NO_ACCOUNT] * 9
    stopped(session)
    assert slurm.told().count("cancel") == 3
    assert "the reconciler is to end it" in caplog.text
    assert slurm.forgotten == [NUMBER]


def test_without_a_number_no_operator_is_asked(spawner: Any, slurm: StandIn) -> None:
    spawner.session, spawner.job_id, spawner.slurm_operator = SessionState(SESSION), "", "slurm"
    slurm.failures = [NO_ACCOUNT] * 9
    stopped(spawner)
    assert slurm.told() == ["cancel"] * 3


def test_a_slurm_that_does_not_answer_is_asked_until_it_does(
    session: Any, slurm: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    slurm.failures = [SILENCE] * 4 + [UnreadableOutput("?")] * 5 + [NO_ACCOUNT]
    slurm.words = [IS_CANCELLED]
    stopped(session)
    assert slurm.told() == ["cancel"] * 11
    assert "Slurm does not take care of job 12 of ada yet" in caplog.text


def test_the_waits_between_two_tries_grow_and_then_stay(
    session: Any, slurm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(session_job, "_RETRY_SECONDS", (1, 2, 5))
    monkeypatch.setattr("jupyterhub_gpu_slurm.session.job.asyncio.sleep", counted)
    slurm.failures, slurm.words = [SILENCE] * 5, [IS_CANCELLED]
    stopped(session)
    assert [seconds for seconds in waits if seconds] == [1, 2, 5, 5, 5]


# --- what the page hears ---


def test_the_page_hears_each_news_once(spawner: Any, slurm: StandIn) -> None:
    async def heard(count: int, change: Callable[[], None]) -> list[str]:
        said = []
        async for event in spawner.progress():
            assert event["since"] == since.isoformat()
            said.append(event["message"])
            change()
            if len(said) == count:
                return said
        raise AssertionError("the progress has an end")

    def next_job() -> None:
        spawner.job.last = WAITS if spawner.job.last is None else RUNS

    async def limited() -> list[str]:
        return await asyncio.wait_for(heard(3, next_job), 10)

    since = spawner._submitted_at = datetime.now(UTC)
    first, second, third = asyncio.run(limited())
    assert first.startswith("Submitting")
    assert "waiting in the queue" in second
    assert "is running on node001" in third


def test_no_news_is_not_told(spawner: Any) -> None:
    async def second() -> None:
        events = spawner.progress()
        await anext(events)
        await asyncio.wait_for(anext(events), 0.1)

    with pytest.raises(TimeoutError):
        asyncio.run(second())


def test_a_cleared_session_is_as_if_it_had_never_been(session: Any, slurm: StandIn) -> None:
    slurm.words = [FAILED]
    polled(session)
    session.clear_state()
    assert polled(session) == 0
    assert (session.session.id, session.job_id, session.idle_tracker.report) == ("", "", None)
