"""``python -I -m dsportal.reconciler``: the service's process."""

import asyncio
import logging
import os
import sys

from tornado.httpclient import HTTPClientError

from dsportal.hub import process as hub_process
from dsportal.hub import tls
from dsportal.reconciler.hub_api import ReconcilerHubApi
from dsportal.reconciler.rounds import Reconciler
from dsportal.settings_file import file_of, load
from dsportal.slurm_client import client_of

log = logging.getLogger("dsportal.reconciler")

# An interrupted start is to go on soon after the hub is back; the hub itself looks first.
_FIRST_ROUNDS_SECONDS = (1.0, 3.0, 5.0, 10.0, 20.0)
_FORBIDDEN = 403


async def keep(reconciler: Reconciler, interval: float) -> int:
    """Do round after round, as long as the hub that started this process is there."""
    pauses = iter(_FIRST_ROUNDS_SECONDS)
    while True:
        left = next(pauses, interval)
        while left > 0:
            await asyncio.sleep(min(left, 1.0))
            left -= 1.0
            if not hub_process.is_there():
                return 0
        try:
            await reconciler.round()
        except HTTPClientError as error:
            if error.code == _FORBIDDEN:
                log.warning("The hub does not know this service any more; it ends")
                return 0
            log.warning("The hub did not answer the reconciler: %s", error)
        except OSError as error:
            log.warning("The hub did not answer the reconciler: %s", error)


def main() -> int:
    """Read the settings, and keep."""
    hub_process.end_when_told()
    logging.basicConfig(
        level=logging.INFO, format="[%(levelname).1s %(asctime)s reconciler] %(message)s"
    )
    settings = load(file_of(os.environ))
    slurm = settings.slurm
    client = client_of(slurm, may_act=True)
    hub = ReconcilerHubApi(
        os.environ["JUPYTERHUB_API_URL"],
        os.environ["JUPYTERHUB_API_TOKEN"],
        tls.client_context(settings.hub),
    )
    reconciler = Reconciler(client, hub, settings.hub.name, slurm.operator)
    return asyncio.run(keep(reconciler, slurm.reconcile_interval_seconds))


if __name__ == "__main__":
    sys.exit(main())
