import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dsportal.session.jobs import words
from dsportal.session.jobs.routes import Jobs, job_to_cancel
from dsportal.session.jobs.service import ClusterService
from dsportal.session.jobs.slurm import SlurmPrograms, SlurmRefused
from tests.unit.session.jobs.cluster_service import StandIn, job
from tests.unit.session.jobs.test_slurm import calls, program

ENDED = "2026-11-21T16:00:23"
AT_END = 1795276823.0


def row(job_id: str, state: str, status: int = 0, name: str = "train") -> str:
    fields = [job_id, state, "None", "sxm2", "node001", "1", "", "N/A", "N/A", ENDED, ENDED, ENDED]
    return "|".join([*fields, str(status), name, ""])


class Scene:
    """A session with the service's stand-in, programs of Slurm's, and a clock that is set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service = StandIn()
        self.moment = self.service.as_of = AT_END
        self.session_job = ""
        self.named: dict[str, str] = {}
        self.slurm_says()

    def slurm_says(self, *rows: str, code: int = 0) -> None:
        (self.folder / "rows").write_text("\n".join(rows))
        program(self.folder, "squeue", f"cat {self.folder}/rows; exit {code}")

    def pass_seconds(self, seconds: float) -> None:
        self.moment += seconds
        self.service.as_of = self.moment

    @property
    def slurm_calls(self) -> int:
        return len(calls(self.folder)) if (self.folder / "calls").exists() else 0

    def play(self, act: Callable[[Jobs], Awaitable[None]]) -> None:
        async def listening() -> None:
            environment = {
                "JUPYTERHUB_API_TOKEN": "secret",
                "PORTAL_JOB_ID": self.session_job,
                **self.named,
            }
            async with self.service.listening():
                service = ClusterService(self.service.url, environment, now=lambda: self.moment)
                slurm = SlurmPrograms(str(self.folder), environment)
                await act(Jobs(service, slurm, environment, now=lambda: self.moment))

        asyncio.run(listening())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def states(jobs: Jobs) -> dict[str, str]:
    return {one["id"]: one["state"] for one in (await jobs.tell())["jobs"]}


def test_many_open_pages_are_one_question(scene: Scene) -> None:
    scene.session_job = "6"
    scene.service.jobs = [job("6", is_session=True), job("7", "PENDING")]

    async def act(jobs: Jobs) -> None:
        for _ in range(3):
            told = await asyncio.gather(*(jobs.tell() for _ in range(20)))
            assert {one["source"] for one in told} == {"service"}
            scene.pass_seconds(5)
        assert await states(jobs) == {"6": "RUNNING", "7": "PENDING"}

    scene.play(act)
    assert scene.service.requests == {"jobs": 4, "cluster": 2}
    # The first look, for jobs that ended before it.
    assert scene.slurm_calls == 1


def test_slurm_is_asked_where_it_hides_the_users_jobs_from_the_service(scene: Scene) -> None:
    scene.session_job = "6"
    scene.service.jobs = []
    scene.slurm_says(row("6", "RUNNING"), row("7", "PENDING"))

    async def act(jobs: Jobs) -> None:
        told = await jobs.tell()
        assert told["source"] == "slurm"
        assert {one["id"] for one in told["jobs"]} == {"6", "7"}
        # The service still says which GPUs are free.
        assert told["free"]

    scene.play(act)


def test_a_session_is_one_also_when_slurm_says_how_it_ended(scene: Scene) -> None:
    scene.service.jobs = [job("7", is_session=True), job("8")]

    async def act(jobs: Jobs) -> None:
        await jobs.tell()
        scene.service.jobs = []
        scene.slurm_says(row("7", "TIMEOUT"), row("8", "FAILED"))
        scene.pass_seconds(20)
        found = {one["id"]: one["is_session"] for one in (await jobs.tell())["jobs"]}
        assert found == {"7": True, "8": False}

    scene.play(act)


@pytest.mark.parametrize(
    "named",
    [
        {"PORTAL_JOB_NAME": "hub-ada"},
        {"PORTAL_JOB_NAME": "hub-ada.two", "JUPYTERHUB_SERVER_NAME": "two"},
    ],
)
def test_other_sessions_are_known_where_only_slurm_tells_of_them(
    scene: Scene, named: dict[str, str]
) -> None:
    scene.named = named
    scene.service.jobs = []
    scene.session_job = "6"
    rows = {"6": "hub-ada", "7": "hub-ada.two", "8": "hub-adam", "9": "training"}
    scene.slurm_says(*(row(number, "RUNNING", name=name) for number, name in rows.items()))

    async def act(jobs: Jobs) -> None:
        found = {one["id"]: one["is_session"] for one in (await jobs.tell())["jobs"]}
        assert found == {"6": True, "7": True, "8": False, "9": False}

    scene.play(act)


def test_what_nobody_sees_is_not_asked_for(scene: Scene) -> None:
    scene.service.jobs = [job("7")]

    async def act(jobs: Jobs) -> None:
        told = await jobs.tell(with_free=False)
        assert [one["id"] for one in told["jobs"]] == ["7"]
        assert told["free"] is None

    scene.play(act)
    assert scene.service.requests == {"jobs": 1}


def test_a_service_that_looked_before_the_session_began_sees_it_later(scene: Scene) -> None:
    scene.session_job = "6"
    scene.service.jobs = []

    async def act(jobs: Jobs) -> None:
        scene.service.as_of = scene.moment - 60
        assert (await jobs.tell())["source"] == "service"

    scene.play(act)


def test_a_job_that_left_the_queue_says_how_it_ended(scene: Scene) -> None:
    scene.service.jobs = [job("7"), job("8")]

    async def act(jobs: Jobs) -> None:
        assert await states(jobs) == {"7": "RUNNING", "8": "RUNNING"}
        scene.service.jobs = [job("8")]
        scene.slurm_says(row("7", "FAILED", 3 << 8), row("8", "RUNNING"))
        scene.pass_seconds(5)
        # Slurm was asked seconds ago; what was known is shown until it may be asked again.
        assert await states(jobs) == {"8": "RUNNING", "7": "RUNNING"}
        assert await jobs.is_over("7") is False
        scene.pass_seconds(15)
        told = {one["id"]: one for one in (await jobs.tell())["jobs"]}
        assert (told["7"]["state"], told["7"]["exit_code"]) == ("FAILED", 3)
        assert told["8"]["state"] == "RUNNING"
        assert await jobs.is_over("7") is True
        scene.pass_seconds(60)
        await jobs.tell()
        assert await jobs.is_over("99") is None

    scene.play(act)
    assert scene.slurm_calls == 2


def test_a_job_that_slurm_has_forgotten_is_over_all_the_same(scene: Scene) -> None:
    scene.service.jobs = [job("7"), job("9_[1-3]", "PENDING")]

    async def act(jobs: Jobs) -> None:
        await jobs.tell()
        scene.service.jobs = []
        scene.pass_seconds(20)
        # What stood for several tasks goes without a word: they have come in its place.
        assert await states(jobs) == {"7": "LOST"}

    scene.play(act)


def test_a_job_that_was_put_back_into_the_queue_is_not_over(scene: Scene) -> None:
    scene.service.jobs = [job("7")]
    scene.slurm_says(row("7", "NODE_FAIL"))

    async def act(jobs: Jobs) -> None:
        scene.service.as_of -= 5
        await jobs.tell()
        assert await states(jobs) == {"7": "NODE_FAIL"}, "Slurm's word is newer"
        scene.slurm_says(row("7", "PENDING"))
        scene.moment += 20
        told = await jobs.tell(is_anew=True)
        assert [one["state"] for one in told["jobs"]] == ["PENDING"], "not known to the service yet"
        scene.service.jobs = [job("7", "PENDING")]
        scene.pass_seconds(5)
        assert await states(jobs) == {"7": "PENDING"}

    scene.play(act)


def test_without_the_service_a_job_that_was_put_back_into_the_queue_is_not_over(
    scene: Scene,
) -> None:
    scene.service.jobs = None
    scene.slurm_says(row("7", "NODE_FAIL"))

    async def act(jobs: Jobs) -> None:
        assert await states(jobs) == {"7": "NODE_FAIL"}
        scene.slurm_says(row("7", "RUNNING"))
        scene.pass_seconds(20)
        assert await states(jobs) == {"7": "RUNNING"}
        assert await jobs.is_over("7") is False
        scene.slurm_says(row("7", "COMPLETED"))
        scene.pass_seconds(20)
        assert await states(jobs) == {"7": "COMPLETED"}

    scene.play(act)


def test_ended_jobs_are_shown_for_an_hour(scene: Scene) -> None:
    scene.slurm_says(row("7", "COMPLETED"))

    async def act(jobs: Jobs) -> None:
        assert await states(jobs) == {"7": "COMPLETED"}
        scene.pass_seconds(3700)
        assert await states(jobs) == {}

    scene.play(act)


def test_without_the_service_slurm_is_asked_four_times_a_minute(scene: Scene) -> None:
    scene.service.jobs = None
    scene.slurm_says(row("7", "RUNNING"))

    async def act(jobs: Jobs) -> None:
        for _ in range(12):
            told = await jobs.tell()
            assert (told["source"], told["free"]) == ("slurm", None)
            assert [one["id"] for one in told["jobs"]] == ["7"]
            scene.pass_seconds(5)

    scene.play(act)
    assert scene.slurm_calls == 4


def test_when_nobody_answers_what_was_known_stays(scene: Scene) -> None:
    scene.service.jobs = [job("7")]

    async def act(jobs: Jobs) -> None:
        before = await jobs.tell()
        scene.service.jobs = None
        scene.slurm_says(code=1)
        scene.pass_seconds(20)
        told = await jobs.tell()
        assert told["source"] is None
        assert (told["jobs"], told["as_of"]) == (before["jobs"], AT_END)

    scene.play(act)


def test_the_session_itself_is_not_cancelled(scene: Scene) -> None:
    scene.session_job = "6"
    program(scene.folder, "scancel", "")

    async def act(jobs: Jobs) -> None:
        with pytest.raises(SlurmRefused, match=words.ITS_OWN_SESSION):
            await jobs.cancel("6")
        await jobs.cancel("7")

    scene.play(act)
    assert calls(scene.folder) == ["scancel 7"]


def test_after_a_cancel_slurm_is_asked_at_the_next_look(scene: Scene) -> None:
    program(scene.folder, "scancel", "")
    scene.service.jobs = [job("7")]

    async def act(jobs: Jobs) -> None:
        assert await states(jobs) == {"7": "RUNNING"}
        await jobs.cancel("7")
        scene.slurm_says(row("7", "CANCELLED"))
        scene.moment += 2
        assert await states(jobs) == {"7": "CANCELLED"}, "the service says what it said before"

    scene.play(act)


def test_the_page_names_one_job() -> None:
    assert job_to_cancel(b'{"job": "7_3"}') == "7_3"


@pytest.mark.parametrize(
    "body", [b"", b"7", b"{}", b'{"job": 7}', b'{"job": "-u root"}', b'{"job": "7", "x": 1}']
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="The body must be"):
        job_to_cancel(body)
