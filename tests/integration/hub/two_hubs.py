"""Two of our hubs on one cluster of their own: ends with 0 if none touches the other's jobs.

A process of its own, because a virtual cluster ends all that its process has started.
"""

import asyncio
from contextlib import ExitStack

from benchmarks.portal import slurm_load
from benchmarks.portal.harness import hubs, people, virtual_cluster
from benchmarks.portal.harness.hubs import Hub, Workshop
from benchmarks.portal.harness.virtual_cluster import Size, VirtualCluster
from tests.waiting import until

NAMES = ("physics", "biology")
USER = "bench001"
SECONDS = 300
"""The nodes get what processor time is left over (`virtual_cluster`)."""


def jobs(cluster: VirtualCluster) -> list[str]:
    """Return the numbers of the jobs that run or wait."""
    argv = ["squeue", "--noheader", "--states=RUNNING,PENDING", "-o", "%i"]
    return cluster.slurm(*argv).split()


def has(hub: Hub, count: int) -> None:
    """Wait until it knows so many sessions, all of them ready."""
    until(lambda: slurm_load.are_ready(hub, count), seconds=SECONDS, what=f"{count} at {hub.url}")


def stop(hub: Hub) -> None:
    """Have the user's session end."""
    with hub.api as api:
        api.delete(f"/users/{USER}/server").raise_for_status()
    has(hub, 0)


def both_start(cluster: VirtualCluster, shops: list[Workshop]) -> str:
    """Start one user's session at each; end the first hub's, and return the other's job."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(hubs.running("ours", shop)) for shop in shops)
        for hub in (first, second):
            hub.add_users([USER])
            asyncio.run(slurm_load.start(hub, [USER]))
            has(hub, 1)
        of_both = jobs(cluster)
        assert len(of_both) == 2
        stop(first)
        has(second, 1)
        (left,) = jobs(cluster)
        assert left in of_both
        return left


def both_start_again(cluster: VirtualCluster, shops: list[Workshop], left: str) -> None:
    """Let each take up its own: none at the first, that job at the second, which ends it."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(hubs.running("ours", shop)) for shop in shops)
        has(second, 1)
        has(first, 0)
        assert jobs(cluster) == [left]
        stop(second)
        assert jobs(cluster) == []


def main() -> None:
    """Have one user at both hubs, before and after both were started again."""
    with ExitStack() as stack:
        cluster = stack.enter_context(virtual_cluster.running(Size(nodes=2)))
        stack.enter_context(people.temporary(1, cluster.folder))
        shops = [hubs.workshop(cluster, cluster.folder / name, name) for name in NAMES]
        rules = [rule for shop in shops for rule in shop.sudo_rules()]
        stack.enter_context(people.sudo_allows(rules))
        left = both_start(cluster, shops)
        both_start_again(cluster, shops, left)


if __name__ == "__main__":
    main()
