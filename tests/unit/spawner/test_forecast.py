import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spawner import forecast
from spawner.errors import CommandTimedOut, UnreadableOutput
from spawner.forecast import Forecast
from spawner.forecaster import Forecaster

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"start": "2026-11-21T14:00:01"}, Forecast("now")),
        ({"start": "2026-11-21T13:59:00"}, Forecast("now")),
        (
            {"start": "2026-11-21T14:20:00"},
            Forecast("later", datetime(2026, 11, 21, 14, 20, tzinfo=UTC)),
        ),
        (
            {"never": "allocation failure: Requested node configuration is not available"},
            Forecast(
                "never",
                why="No node has so many GPUs, cores and memory "
                "(Requested node configuration is not available).",
            ),
        ),
        (
            {
                "never": "sbatch: error: a warning\n"
                "sbatch: error: Batch job submission failed: Requested time limit is invalid"
            },
            Forecast(
                "never",
                why="The partition does not allow so much time (Requested time limit is invalid).",
            ),
        ),
        ({"never": ""}, Forecast("never", why="Slurm says: no reason given.")),
        ({"never": "sbatch: Fnord."}, Forecast("never", why="Slurm says: Fnord.")),
    ],
)
def test_answers(answer: dict[str, Any], expected: Forecast) -> None:
    assert forecast.read(answer, NOW) == expected


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


def test_few_are_asked_for_at_once() -> None:
    client = FakeClient()
    ask(client, *((f"user{number}", "one GPU") for number in range(20)))
    assert client.most_at_once == 3
    assert len(client.asked) == 20


def test_a_forecast_that_fails_is_unknown() -> None:
    (answer,) = ask(FakeClient(fails=True), ("user1", "one GPU"))
    assert answer.state == "unknown"
