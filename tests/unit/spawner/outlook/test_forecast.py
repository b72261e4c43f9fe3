import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jupyterhub_gpu_slurm.errors import CommandFailed, CommandTimedOut, UnreadableOutput
from jupyterhub_gpu_slurm.outlook import forecast
from jupyterhub_gpu_slurm.outlook.forecast import Forecast
from jupyterhub_gpu_slurm.outlook.forecaster import Forecaster

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"start": "2026-11-21T14:00:01"}, Forecast("now")),
        ({"start": "2026-11-21T13:59:00"}, Forecast("now")),
        (
            {"start": "2026-11-21T14:20:00"},
            Forecast("later", datetime(2026, 11, 21, 14, 20, tzinfo=UTC)),
        ),
        ({"never": ""}, Forecast("never", why="Slurm says: no reason given.")),
        ({"never": "sbatch: Fnord."}, Forecast("never", why="Slurm says: Fnord.")),
    ],
)
def test_answers(answer: dict[str, Any], expected: Forecast) -> None:
    assert forecast.read(answer, NOW) == expected


@pytest.mark.parametrize(
    ("words", "plain", "of_slurm"),
    [
        # As sbatch --test-only of Slurm 22.05 prints them.
        (
            "allocation failure: Requested node configuration is not available",
            "enough GPUs, cores and memory",
            "Requested node configuration is not available",
        ),
        (
            "allocation failure: Requested time limit is invalid (missing or exceeds some limit)",
            "not allow so much time",
            "Requested time limit is invalid (missing or exceeds some limit)",
        ),
        (
            "allocation failure: User's group not permitted to use this partition",
            "partition is not open to you",
            "User's group not permitted to use this partition",
        ),
        (
            "allocation failure: Required partition not available (inactive or drain)",
            "partition does not accept",
            "Required partition not available (inactive or drain)",
        ),
        (
            "sbatch: error: invalid partition specified: nope\n"
            "allocation failure: Invalid partition name specified",
            "partition does not accept",
            "Invalid partition name specified",
        ),
        (
            "allocation failure: More processors requested than permitted",
            "has enough cores",
            "More processors requested than permitted",
        ),
        (
            "allocation failure: Invalid account or account/partition combination specified",
            "Slurm account does not allow",
            "Invalid account or account/partition combination specified",
        ),
        # A limit of the accounting: acct_policy_validate() and job_create() of Slurm's sources.
        (
            f"sbatch: error: QOSMaxGRESPerJob\nallocation failure: {POLICY}",
            "(QOS) does not allow",
            "QOSMaxGRESPerJob",
        ),
        (
            f"sbatch: error: AssocMaxWallDurationPerJobLimit\nallocation failure: {POLICY}",
            "limits of your Slurm account",
            "AssocMaxWallDurationPerJobLimit",
        ),
        (f"allocation failure: {POLICY}", "limits of your account or quality of service", POLICY),
        (
            "sbatch: error: a warning\n"
            "sbatch: error: Batch job submission failed: Requested time limit is invalid",
            "not allow so much time",
            "Requested time limit is invalid",
        ),
    ],
)
def test_slurms_no_in_plain_words(words: str, plain: str, of_slurm: str) -> None:
    found = forecast.read({"never": words}, NOW)
    assert found.state == "never"
    assert plain in found.why.removesuffix(f" ({of_slurm}).")
    assert found.why.endswith(f" ({of_slurm}).")
    assert found.why[0].isupper()


def test_a_sites_own_words_are_given_as_they_are() -> None:
    words = "sbatch: error: Your project has no hours left.\nallocation failure: Unspecified error"
    found = forecast.read({"never": words}, NOW)
    assert found == Forecast("never", why="Slurm says: Your project has no hours left.")


@pytest.mark.parametrize(
    "words",
    [
        "allocation failure: Requested node configuration is not available",
        "allocation failure: Required node not available (down, drained or reserved)",
    ],
)
def test_what_only_nodes_out_of_service_could_run_would_wait(words: str) -> None:
    answer = forecast.read({"never": words}, NOW, is_large_enough=True)
    assert answer.state == "unknown"
    assert "out of service" in answer.why


def test_a_reservation_that_begins_later_can_be_waited_for() -> None:
    answer = forecast.read({"never": "allocation failure: Invalid time specified"}, NOW)
    assert answer.state == "unknown"
    assert "not begun" in answer.why


@pytest.mark.parametrize("limit", ["AssocMaxSubmitJobLimit", "QOSGrpSubmitJobsLimit"])
def test_who_has_many_jobs_is_not_told_that_it_can_never_start(limit: str) -> None:
    words = f"sbatch: error: {limit}\nallocation failure: {POLICY}"
    answer = forecast.read({"never": words}, NOW)
    assert answer.state == "unknown"
    assert limit in answer.why


@pytest.mark.parametrize(
    "words",
    [
        "allocation failure: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Munge encode failed: Failed to access /run/munge\n"
        "allocation failure: Protocol authentication error",
        "allocation failure: Socket timed out on send/recv operation",
        "allocation failure: Zero Bytes were transmitted or received",
        "allocation failure: Resource temporarily unavailable",
        "allocation failure: Slurm backup controller in standby mode",
    ],
)
def test_a_question_that_did_not_get_through_is_no_refusal(words: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        forecast.read({"never": words}, NOW)
    # Words of a program that runs as the user stay on one line of the hub's log.
    assert words.replace("\n", " ") in caught.value.detail


@pytest.mark.parametrize("answer", [{}, {"start": "soon"}, {"start": None}, {"never": 1}])
def test_what_the_launcher_never_says_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(UnreadableOutput):
        forecast.read(answer, NOW)


@dataclass
class FakeClient:
    """Stands in for Slurm where questions must be counted."""

    fails: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def forecast(self, username: str, script: str) -> dict[str, Any]:
        self.asked.append((username, script))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        if self.fails:
            raise CommandTimedOut("no answer")
        return {"start": (datetime.now(UTC) + timedelta(hours=1)).replace(tzinfo=None).isoformat()}


def ask(client: FakeClient, *questions: tuple[str, str]) -> list[Forecast]:
    async def together() -> list[Forecast]:
        forecaster = Forecaster(client)  # type: ignore[arg-type]  # a stand-in
        return list(await asyncio.gather(*(forecaster.forecast(*one) for one in questions)))

    return asyncio.run(together())


def test_a_choice_that_many_tabs_ask_for_costs_one_question_or_few() -> None:
    client = FakeClient()
    ask(client, *[("user1", "one GPU")] * 20)
    assert len(client.asked) <= 3


def test_an_older_choice_of_the_same_user_is_not_asked_for_any_more() -> None:
    client = FakeClient()
    answers = ask(client, *(("user1", f"{number} GPUs") for number in range(10)))
    assert answers[-1].state == "later"
    assert len(client.asked) <= 4


def test_one_user_takes_one_door() -> None:
    client = FakeClient()
    ask(client, *(("user1", f"{number} GPUs") for number in range(10)))
    assert client.most_at_once == 1


def test_few_are_asked_for_at_once() -> None:
    client = FakeClient()
    ask(client, *((f"user{number}", "one GPU") for number in range(20)))
    assert client.most_at_once == 3
    assert len(client.asked) == 20


def test_a_forecast_that_fails_is_unknown() -> None:
    (answer,) = ask(FakeClient(fails=True), ("user1", "one GPU"))
    assert answer.state == "unknown"
