"""``python -m jupyterhub_gpu_slurm.reconciler``: the service's process."""

import argparse
import asyncio
import logging
import os
import signal
import ssl
from collections.abc import Mapping
from pathlib import Path

from jupyterhub_gpu_slurm.defaults import SlurmDefaults
from jupyterhub_gpu_slurm.launcher_files import DEFAULT_PATH, launcher_cmd
from jupyterhub_gpu_slurm.reconciler.hub_sessions import ReconcilerHubApi
from jupyterhub_gpu_slurm.reconciler.loop import run_rounds
from jupyterhub_gpu_slurm.reconciler.rounds import Reconciler
from jupyterhub_gpu_slurm.slurm.client import SlurmClient


def at_least_one(text: str) -> float:
    """Read a number of seconds."""
    seconds = float(text)
    if not seconds >= 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return seconds


def parser() -> argparse.ArgumentParser:
    """Return what the command line may say."""
    made = argparse.ArgumentParser(
        prog="python -m jupyterhub_gpu_slurm.reconciler",
        description="Cancel sessions that belong to no server, and let interrupted starts go on. "
        "A service of the hub, which starts it.",
    )
    add = made.add_argument
    add("--mark", required=True, help="c.GpuSlurmSpawner.hub_mark")
    add("--slurm-conf", default=SlurmDefaults.config_file, help="(%(default)s)")
    add("--bin-dir", default=SlurmDefaults.bin_dir, help="with squeue (%(default)s)")
    add("--operator", default="", help="the launcher's; none: only users' own jobs are ended")
    add("--path", type=Path, default=DEFAULT_PATH, help="of the launcher (%(default)s)")
    add("--sudo", default=SlurmDefaults.sudo, help="(%(default)s)")
    interval, timeout = (
        SlurmDefaults.reconcile_interval_seconds,
        SlurmDefaults.command_timeout_seconds,
    )
    add("--interval", type=at_least_one, default=interval, metavar="SECONDS", help="(%(default)s)")
    add("--command-timeout", type=float, default=timeout, metavar="SECONDS", help="(%(default)s)")
    return made


def tls_context(environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return how the hub is spoken to, as it tells its services; ``None`` without TLS."""
    authority = environment.get("JUPYTERHUB_SSL_CLIENT_CA")
    if not authority:
        return None
    made = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=authority)
    made.load_cert_chain(
        environment["JUPYTERHUB_SSL_CERTFILE"], environment["JUPYTERHUB_SSL_KEYFILE"]
    )
    return made


def main(arguments: list[str] | None = None, environment: Mapping[str, str] = os.environ) -> None:
    """Run the reconciler until the hub ends or stops it."""
    # One that has ended before this is found out by the next hub, which does not know our token.
    hub = os.getppid()
    given = parser().parse_args(arguments)
    # Nothing is written here that an end could leave half done.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    logging.basicConfig(
        level=logging.INFO, format="[%(levelname).1s %(asctime)s reconciler] %(message)s"
    )
    client = SlurmClient(
        bin_dir=given.bin_dir,
        slurm_conf=given.slurm_conf,
        launcher_cmd=launcher_cmd(given.path, given.sudo),
        time_limit=given.command_timeout,
        operator=given.operator,
    )
    api = ReconcilerHubApi(
        environment["JUPYTERHUB_API_URL"],
        environment["JUPYTERHUB_API_TOKEN"],
        tls_context(environment),
    )
    reconciler = Reconciler(client, api, given.mark)
    asyncio.run(run_rounds(reconciler, given.interval, lambda: os.getppid() == hub))


if __name__ == "__main__":
    main()
