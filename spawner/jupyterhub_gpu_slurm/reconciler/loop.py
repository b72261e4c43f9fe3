"""The reconciler's loop: one round after another, until the hub that started it has ended."""

import asyncio
import logging
from collections.abc import Callable

from tornado.httpclient import HTTPClientError

from jupyterhub_gpu_slurm.reconciler.rounds import Reconciler

log = logging.getLogger(__name__)

# An interrupted start is to go on soon after the hub is back; the hub itself looks first.
_FIRST_ROUNDS_SECONDS = (1.0, 3.0, 5.0, 10.0, 20.0)
_FORBIDDEN = 403


async def run_rounds(
    reconciler: Reconciler, interval: float, is_hub_there: Callable[[], bool]
) -> None:
    """Run a round every ``interval`` seconds until the hub that started this process has ended."""
    pauses = iter(_FIRST_ROUNDS_SECONDS)
    while True:
        left = next(pauses, interval)
        while left > 0:
            await asyncio.sleep(min(left, 1.0))
            left -= 1.0
            if not is_hub_there():
                return
        try:
            await reconciler.round()
        except HTTPClientError as error:
            if error.code == _FORBIDDEN:
                log.warning("The hub does not know this service any more; it ends")
                return
            log.warning("The hub did not answer the reconciler: %s", error)
        except OSError as error:
            log.warning("The hub did not answer the reconciler: %s", error)
