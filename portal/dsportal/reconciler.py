"""``python -I -m dsportal.reconciler``: the spawner's reconciler, with the portal's settings."""

import asyncio
import logging
import os

from dsportal.hub import process as hub_process
from dsportal.hub import tls
from dsportal.settings_file import file_of, load
from dsportal.slurm_client import client_of
from jupyterhub_gpu_slurm.reconciler.hub_sessions import ReconcilerHubApi
from jupyterhub_gpu_slurm.reconciler.loop import run_rounds
from jupyterhub_gpu_slurm.reconciler.rounds import Reconciler


def main() -> None:
    """Read the settings, and run the reconciler until the hub ends."""
    hub_process.end_when_told()
    logging.basicConfig(
        level=logging.INFO, format="[%(levelname).1s %(asctime)s reconciler] %(message)s"
    )
    settings = load(file_of(os.environ))
    slurm = settings.slurm
    hub = ReconcilerHubApi(
        os.environ["JUPYTERHUB_API_URL"],
        os.environ["JUPYTERHUB_API_TOKEN"],
        tls.client_context(settings.hub),
    )
    reconciler = Reconciler(client_of(slurm, may_act=True), hub, settings.hub.name)
    asyncio.run(run_rounds(reconciler, slurm.reconcile_interval_seconds, hub_process.is_there))


if __name__ == "__main__":
    main()
