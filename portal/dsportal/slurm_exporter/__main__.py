"""``python -Im dsportal.slurm_exporter --slurm-conf FILE --address ADDRESS --port PORT``."""

import argparse
import asyncio
import logging
import signal
import threading
import time
from collections.abc import Iterator
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dsportal.response_headers import NAME
from dsportal.slurm_exporter import scheduler
from dsportal.slurm_exporter.figures import Answer, Figures
from jupyterhub_gpu_slurm.errors import SlurmError
from jupyterhub_gpu_slurm.slurm.client import SlurmClient

log = logging.getLogger("dsportal.slurm_exporter")
_QUESTION_SECONDS = 8.0


class Exporter(Collector):
    """Asks Slurm for whoever scrapes; an answer is good for a while, whoever else scrapes.

    A `SharedAnswer` belongs to one event loop, and Prometheus's server answers in threads: it would
    need the lock as well.
    """

    def __init__(self, client: SlurmClient, good_seconds: float) -> None:
        self._client = client
        self._good_seconds = good_seconds
        self._only_one = threading.Lock()
        self._asked_at = -float("inf")
        self._answer: Answer | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give the figures of an answer that is new enough."""
        with self._only_one:
            if time.monotonic() - self._asked_at >= self._good_seconds:
                self._answer = asyncio.run(self._asked())
                self._asked_at = time.monotonic()
            answer = self._answer
        yield from Figures(answer).collect()

    async def _asked(self) -> Answer | None:
        try:
            cluster, jobs, text = await asyncio.gather(
                self._client.cluster(), self._client.queue(), self._client.diagnostics()
            )
        except SlurmError as error:
            log.warning("Slurm does not tell its figures: %s", error.detail)
            return None
        return Answer(cluster, jobs, scheduler.read(text))


def main() -> None:
    """Answer Prometheus until told to end."""
    logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s] %(message)s")
    options = _parser().parse_args()
    client = SlurmClient(options.bin_dir, options.slurm_conf, (), _QUESTION_SECONDS)
    registry = CollectorRegistry()
    # Before there are threads, which would take the signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    registry.register(Exporter(client, options.good_seconds))
    # Python's own would say its version.
    ServerHandler.server_software = WSGIRequestHandler.server_version = NAME
    WSGIRequestHandler.sys_version = ""
    start_http_server(options.port, options.address, registry)
    # Its threads end with this one.
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dsportal.slurm_exporter", description=__doc__)
    parser.add_argument("--slurm-conf", required=True)
    parser.add_argument("--bin-dir", default="/usr/bin", help="with Slurm's programs (%(default)s)")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--good-seconds", type=float, default=10.0)
    return parser


if __name__ == "__main__":
    main()
