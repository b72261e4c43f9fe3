"""Services that must be stopped during a restore, and whether they are."""

import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from dsportal.settings.whole import Settings

SLURMCTLD = "slurmctld"


def running(settings: Settings) -> list[str]:
    """Name those that answer on their ports.

    Without slurm.conf no Slurm of this portal runs: on the usual ports would be somebody else's.
    """
    hub = urlsplit(settings.hub.api_url)
    found = {"the hub": (hub.hostname or "", hub.port or 80)}
    conf = Path(settings.slurm.config_file)
    if settings.backup.slurm_state_dir and conf.exists():
        ports = slurm_ports(conf.read_text(encoding="utf-8"))
        found[SLURMCTLD] = ("127.0.0.1", ports["SlurmctldPort"])
        if settings.backup.accounting_socket:
            found["slurmdbd"] = ("127.0.0.1", ports["AccountingStoragePort"])
    return [name for name, address in found.items() if _answers(address)]


def slurm_ports(text: str) -> dict[str, int]:
    """Read the daemons' ports from slurm.conf; Slurm's own where it names none."""
    ports = {"SlurmctldPort": 6817, "AccountingStoragePort": 6819}
    for key in ports:
        if given := re.search(rf"(?im)^\s*{key}\s*=\s*(\d+)", text):
            ports[key] = int(given[1])
    return ports


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=3).close()
    except OSError:
        return False
    return True
