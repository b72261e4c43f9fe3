"""Kernels as a session starts them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from dsportal.session.kernels.configuration import install, with_configuration

IPYKERNEL = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
Start = Callable[..., tuple[KernelManager, BlockingKernelClient]]


@pytest.fixture(scope="module")
def start_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start kernels; what is given goes before their command."""
    with ExitStack() as at_the_end:

        def start(*before: str) -> tuple[KernelManager, BlockingKernelClient]:
            # A socket's path may have 107 characters at most.
            folder = tmp_path_factory.mktemp("k")
            manager = KernelManager(transport="ipc", connection_file=str(folder / "kernel.json"))
            argv = with_configuration([*before, *IPYKERNEL], str(install(folder)))
            manager._kernel_spec = KernelSpec(argv=argv, display_name="a test", language="python")
            at_the_end.callback(manager.cleanup_resources)
            manager.start_kernel()
            at_the_end.callback(manager.shutdown_kernel, now=True)
            client = manager.client()
            client.start_channels()
            at_the_end.callback(client.stop_channels)
            client.wait_for_ready(timeout=300)
            return manager, client

        yield start


@pytest.fixture(scope="module")
def kernel(start_kernel: Start) -> tuple[KernelManager, BlockingKernelClient]:
    """One that the tests of a file share."""
    return start_kernel()


@pytest.fixture(scope="module")
def manager(kernel: tuple[KernelManager, BlockingKernelClient]) -> KernelManager:
    return kernel[0]


@pytest.fixture(scope="module")
def client(kernel: tuple[KernelManager, BlockingKernelClient]) -> BlockingKernelClient:
    return kernel[1]
