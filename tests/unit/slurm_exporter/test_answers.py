import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.waiting import until


@pytest.fixture
def exporter() -> Iterator[str]:
    """An exporter whose Slurm is not there; its address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    argv = [sys.executable, "-m", "portal.slurm_exporter", "--slurm-conf=/dev/null"]
    process = subprocess.Popen([*argv, "--address=127.0.0.1", f"--port={port}"])
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
