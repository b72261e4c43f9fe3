"""JupyterHub's `internal_ssl`, through Slurm: a session's certificate travels in its input."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from jupyterhub_gpu_slurm.certificates import Authority
from jupyterhub_gpu_slurm.kept import Kept
from jupyterhub_gpu_slurm.policy import AcceptedRequest

# An administrator may have made the job longer.
_SPARE = timedelta(days=30)

_authority = lru_cache(Authority.of_hub)


class Certified(Kept):
    """Makes the certificate of a session where it is submitted, and none before."""

    async def create_certs(self) -> dict[str, str]:
        """Make no files: JupyterHub's would be one for all servers of a user, and stay."""
        return {}

    async def _certificate(self, request: AcceptedRequest) -> Mapping[str, Mapping[str, str]]:
        """Return what the session's input says of its certificate; nothing without TLS."""
        if not self.internal_ssl:
            return {}
        cluster = await self._slurm.nodes.cluster()
        nodes = [
            node
            for partition in cluster.partitions
            if partition.name == request.partition
            for node in partition.nodes
        ]
        authority = _authority(
            Path(self.internal_certs_location), Path(self.internal_trust_bundles["notebooks-ca"])
        )
        extensions = timedelta(hours=self.extension_hours) * self.max_extensions
        waiting = timedelta(seconds=self.queue_timeout)
        made = authority.issue(
            self.user.name,
            [host for node in nodes for host in (node.name, node.address)],
            waiting + request.time + extensions + _SPARE,
            datetime.now(UTC),
        )
        return {"certificate": made}
