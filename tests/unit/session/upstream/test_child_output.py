"""ipykernel as it is, with our file of configuration: tells when what that mends has changed."""

import sys
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from dsportal.session.kernels.configuration import with_configuration
from tests.network import sockets
from tests.waiting import until

FORK = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=print, args=["from a fork"])
child.start()
child.join()
"""


def written_by(client: BlockingKernelClient, code: str) -> str:
    found: list[str] = []

    def note(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            found.append(message["content"]["text"])

    client.execute_interactive(code, timeout=60, output_hook=note)
    with suppress(Empty):  # what a fork wrote may come after the cell's end
        while True:
            note(client.get_iopub_msg(timeout=0.2))
    return "".join(found)


def test_the_kernel_opens_no_port(manager: KernelManager, client: BlockingKernelClient) -> None:
    pid = int(written_by(client, "import os; print(os.getpid())"))
    found = sockets.of_processes({pid})
    assert [one for one in found if one.kind != "unix"] == []
    folder = Path(manager.connection_file).parent
    files = [Path(one.address) for one in found]
    assert {file.parent for file in files} == {folder}
    assert len([file for file in files if file.name.endswith("-children")]) == 1


def test_what_a_fork_writes_is_shown(client: BlockingKernelClient) -> None:
    until(
        lambda: "from a fork" in written_by(client, FORK), seconds=60, what="the output of a fork"
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"],
        ["/home/me/ipykernel/bin/xpython", "-f", "{connection_file}"],
        ["python", "-m", "ipykernel", "-f", "{connection_file}", "--config=/home/me/own.py"],
    ],
)
def test_other_kernels_and_own_files_of_configuration_stay(argv: list[str]) -> None:
    assert with_configuration(argv, "/c.py") == argv


def test_a_wrapper_around_ipykernel_hands_the_file_on() -> None:
    wrapper = ["/usr/bin/env", "python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert with_configuration(wrapper, "/c.py") == [*wrapper, "--config=/c.py"]


def test_the_file_is_not_imported_by_the_session() -> None:
    """It is for another Python, and would bring ipykernel into the server."""
    assert "dsportal.session.upstream.child_output" not in sys.modules
