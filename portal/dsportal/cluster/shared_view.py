"""A snapshot rendered for all viewers: each row once for those who see the same."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from dsportal.cluster import view
from dsportal.cluster.snapshot import Snapshot
from dsportal.cluster.view import JobRow, NodeRow, Viewer
from dsportal.cluster.words import JOBS_HIDDEN

T = TypeVar("T")


@dataclass(frozen=True)
class SharedView:
    """A snapshot, and what is written of it, for hundreds who look at the same moment.

    Most have no job there: they see the same. Who has one sees a few nodes differently.
    """

    snapshot: Snapshot
    mark: str
    """What the names of this hub's sessions begin with."""
    trouble: str | None = None
    """In words, why the snapshot is not a new one."""
    hides_jobs: bool = False
    """Whether Slurm does not tell of the jobs that there are."""
    _written: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    def as_seen_by(self, viewer: Viewer) -> Viewer:
        """Give who stands for all those who see the same."""
        return viewer if viewer.name in self._owners else replace(viewer, name=None)

    def nodes(self, viewer: Viewer) -> list[NodeRow]:
        """Give the rows of all nodes."""
        return [
            self.once(
                ("node", node.name, self._on(node.name, viewer)),
                lambda node=node: view.node_row(self.snapshot, node, viewer),  # type: ignore[misc]
            )
            for node in self.snapshot.nodes
        ]

    def jobs(self, viewer: Viewer, *, only_own: bool = False) -> list[JobRow]:
        """Give the rows of jobs: those that run by their end, those that wait in their turn."""
        return [
            self.once(
                ("job", job.job_id, job.label, self._of(job.user, viewer)),
                lambda job=job: view.job_row(self.snapshot, job, viewer, self.mark),  # type: ignore[misc]
            )
            for job in self.snapshot.jobs
            if not only_own or job.user == viewer.name
        ]

    def cluster_body(self, viewer: Viewer) -> str:
        """Write the answer of ``api/v1/cluster``, but for its moment and its brackets."""
        seen = self.as_seen_by(viewer)
        return self.once(
            ("cluster", seen),
            lambda: _members(
                trouble=self.trouble,
                gpus=self.gpus,
                partitions=self.partitions,
                nodes=self.nodes(seen),
            ),
        )

    def jobs_body(self, viewer: Viewer, *, only_own: bool = False) -> str:
        """Write the answer of ``api/v1/jobs``, but for its moment and its brackets."""
        seen = self.as_seen_by(viewer)
        return self.once(
            ("jobs", seen, only_own),
            lambda: _members(trouble=self.jobs_trouble, jobs=self.jobs(seen, only_own=only_own)),
        )

    def dated(self, body: str) -> str:
        """Write a body as a whole answer."""
        return f'{{"as_of":{self.snapshot.as_of.timestamp():.3f},{body}}}'

    def once(self, key: object, write: Callable[[], T]) -> T:
        """Give what was written under this key, or write it now."""
        if key not in self._written:
            self._written[key] = write()
        return self._written[key]  # type: ignore[return-value]

    @property
    def jobs_trouble(self) -> str | None:
        """In words, why the jobs are old ones, or none at all."""
        return self.trouble or (JOBS_HIDDEN if self.hides_jobs else None)

    @cached_property
    def gpus(self) -> view.GpuCount:
        """All GPUs."""
        return view.count(self.snapshot, self.snapshot.nodes)

    @cached_property
    def partitions(self) -> list[view.PartitionRow]:
        """The rows of all partitions, which all see the same."""
        return [
            view.partition_row(self.snapshot, partition)
            for partition in self.snapshot.cluster.partitions
        ]

    @cached_property
    def _owners(self) -> frozenset[str]:
        return frozenset(job.user for job in self.snapshot.jobs)

    @cached_property
    def _owners_on(self) -> dict[str, frozenset[str]]:
        return {
            name: frozenset(gpu.job.user for gpu in gpus if gpu.job)
            for name, gpus in self.snapshot.gpus.items()
        }

    def _on(self, node: str, viewer: Viewer) -> Viewer:
        is_there = viewer.name in self._owners_on[node]
        return viewer if is_there else replace(viewer, name=None)

    def _of(self, user: str, viewer: Viewer) -> Viewer:
        return viewer if viewer.name == user else replace(viewer, name=None)


def _members(**members: object) -> str:
    """Write the members of an object, without its brackets."""
    return json.dumps(members, separators=(",", ":"))[1:-1]
