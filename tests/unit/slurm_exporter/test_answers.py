import os
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.checkout import PYTHONPATH
from tests.network.sockets import free_port
from tests.waiting import until


@pytest.fixture
def exporter() -> Iterator[str]:
    """An exporter whose Slurm is not there; its address."""
    port = free_port()
    argv = [sys.executable, "-m", "dsportal.slurm_exporter", "--slurm-conf=/dev/null"]
    argv += ["--address=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": PYTHONPATH})
    url = f"http://127.0.0.1:{port}/metrics"

    def answers() -> bool:
        try:
            return httpx.get(url, timeout=10).is_success
        except httpx.TransportError:
            return False

    until(answers, seconds=30, what="the exporter answers")
    yield url
    process.terminate()
    process.wait(10)


def test_no_answer_names_a_version(exporter: str) -> None:
    for method in ("GET", "HEAD", "PUT"):
        assert httpx.request(method, exporter).headers["Server"].strip() == "portal", method
