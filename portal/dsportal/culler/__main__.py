"""``python -I -m dsportal.culler``: the service's process."""

import os
import sys

import jupyterhub_idle_culler
from tornado.ioloop import IOLoop, PeriodicCallback
from traitlets.config import Config

from dsportal.culler.decision import CullDecision
from dsportal.hub import process
from dsportal.settings.hub import HubSettings
from dsportal.settings_file import file_of, load
from dsportal.timers import use_monotonic_clock
from dsportal.tls_context import reuse_contexts

_PARENT_MILLISECONDS = 1000


def configuration(interval_seconds: int, decision: CullDecision, hub: HubSettings) -> Config:
    """Say what differs from the culler's defaults."""
    return Config(
        {
            "IdleCuller": {
                "cull_every": interval_seconds,
                "cull_arbiter_hook": decision.decide,
                "ssl_enabled": hub.internal_ssl,
                "internal_certs_location": hub.certificates_dir,
                # Its default is a file of the folder that it happens to run in.
                "config_file": "",
            }
        }
    )


def main() -> int:
    """Read the settings, and look after the servers, as long as the hub is there."""
    process.end_when_told()
    settings = load(file_of(os.environ))
    decision = CullDecision(
        os.environ["JUPYTERHUB_API_URL"],
        os.environ["JUPYTERHUB_API_TOKEN"],
        settings.hub,
    )
    use_monotonic_clock()
    loop = IOLoop.current()

    def end_without_hub() -> None:
        if not process.is_there():
            loop.stop()

    loop.add_callback(PeriodicCallback(end_without_hub, _PARENT_MILLISECONDS).start)
    config = configuration(settings.idle.check_interval_seconds, decision, settings.hub)
    # It makes one for each look.
    reuse_contexts(jupyterhub_idle_culler)
    jupyterhub_idle_culler.IdleCuller.launch_instance(argv=[], config=config)
    return 0


if __name__ == "__main__":
    sys.exit(main())
