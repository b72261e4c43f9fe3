import asyncio
from typing import Any

import pytest

from dsportal.session.jobs.records import FreeGpus, UserJob
from dsportal.session.jobs.service import ClusterService, NoView, free_from, free_gpus, jobs_from
from tests.unit.session.jobs.cluster_service import NODES, StandIn, job

ENVIRONMENT = {"JUPYTERHUB_API_TOKEN": "secret"}


def test_only_the_users_own_jobs_are_taken() -> None:
    mine = job("7_2", "PENDING", name="train", reason="no node is free", nodes=[], submitted=5)
    said = jobs_from({"as_of": 9, "jobs": [mine, job("8", is_mine=False)]})
    assert said.as_of == 9.0
    assert said.jobs == (
        UserJob(
            id="7_2",
            state="PENDING",
            name="train",
            reason="no node is free",
            gpus=1,
            submitted=5.0,
        ),
    )


@pytest.mark.parametrize("job_id", ["7_[0-90:10]", "7_[1,3,5,7,9,...%2]", "7_[1,3,12"])
def test_the_service_is_heard_while_an_array_with_gaps_waits(job_id: str) -> None:
    said = jobs_from({"as_of": 9, "jobs": [job(job_id, "PENDING"), job("8")]})
    assert [one.id for one in said.jobs] == [job_id, "8"]


def test_free_gpus_are_counted_by_type_and_once_for_the_same_nodes() -> None:
    nodes = [{**node, "partitions": [*node["partitions"], "urgent"]} for node in NODES]
    assert free_gpus(nodes) == (
        FreeGpus(("all", "urgent"), "v100", 3, 6),
        FreeGpus(("all", "urgent"), "a100", 0, 3),
        FreeGpus(("sxm2",), "v100", 2, 4),
        FreeGpus(("sxm2",), "a100", 0, 2),
    )


def test_the_default_partition_is_named_first() -> None:
    partitions = [{"name": "urgent", "is_default": False}, {"name": "all", "is_default": True}]
    nodes = [{**node, "partitions": ["urgent", "all"]} for node in NODES]
    found = free_from({"nodes": nodes, "partitions": partitions})
    assert {gpus.partitions for gpus in found} == {("all", "urgent")}


def test_the_service_is_asked_once_in_a_while_in_the_sessions_name() -> None:
    moment = 0.0
    service = StandIn(job("7"))

    async def ask() -> None:
        nonlocal moment
        async with service.listening():
            asked = ClusterService(service.url, ENVIRONMENT, now=lambda: moment)
            for _ in range(3):
                await asked.jobs()
                await asked.free()
            moment = 5.0
            await asked.jobs()
            await asked.free()

    asyncio.run(ask())
    assert service.requests == {"jobs": 2, "cluster": 1}
    assert service.tokens == {"token secret"}


@pytest.mark.parametrize(
    "jobs",
    [
        None,  # a page to log in
        [{}],
        [job("7; scancel 8")],
        [job("7", gpus="many")],
        [job("7", submitted="yesterday")],
    ],
)
def test_what_cannot_be_read_is_no_view(
    jobs: list[dict[str, Any]] | None, caplog: pytest.LogCaptureFixture
) -> None:
    moment = 0.0
    service = StandIn()
    service.jobs = jobs

    async def ask() -> None:
        nonlocal moment
        async with service.listening():
            asked = ClusterService(service.url, ENVIRONMENT, now=lambda: moment)
            # It is given half a minute.
            for at in (0.0, 5.0, 29.0, 30.0):
                moment = at
                with pytest.raises(NoView):
                    await asked.jobs()

    asyncio.run(ask())
    assert service.requests == {"jobs": 2}
    assert caplog.text.count("The cluster's view does not answer (jobs)") == 1


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:9"])
def test_without_a_service_there_is_no_view(url: str | None) -> None:
    async def ask() -> None:
        with pytest.raises(NoView):
            await ClusterService(url, ENVIRONMENT).jobs()

    asyncio.run(ask())
