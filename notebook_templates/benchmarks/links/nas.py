"""The NAS's end of a link: its addresses, and the iperf3 server that listens there.

The NAS is no node of the job, so nothing of the run's is started there. Either a server listens
already, or a program of the site's own starts one. It asks for no password: whoever reaches it may
measure with it.
"""

import ipaddress
import re
from dataclasses import dataclass

from measurement import site_program
from measurement.choices import SettingError

PORT = 5201
"""On which iperf3 listens if it is not told otherwise."""
SERVER_HELP = (
    "a program of the site's that starts an iperf3 server on the NAS, for one measurement, and "
    "ends: run with ADDRESS and PORT before each of them; empty: servers listen already"
)
_START_SECONDS = 120
_WITH_PORT = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<plain>[^:\[\]]+))(?::(?P<port>[0-9]+))?")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
# What iperf3 says before the reason.
_UNREACHED = "unable to connect to server"


class NasServerError(RuntimeError):
    """Nothing can be measured with an address of the NAS; the message says why and what to do."""


@dataclass(frozen=True)
class NasAddress:
    """Where an iperf3 server of the NAS listens."""

    host: str
    """An address or a name."""
    port: int = PORT

    @property
    def name(self) -> str:
        """What it is called in the results.

        >>> NasAddress("10.1.0.9").name, NasAddress("fd00::9", 5202).name
        ('10.1.0.9', '[fd00::9]:5202')
        """
        if self.port == PORT:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def addresses_of(text: str) -> list[NasAddress]:
    """Read addresses between commas, each once. Raises `SettingError`.

    >>> [one.name for one in addresses_of("10.1.0.9, nas2.example.org:5202,fd00::9")]
    ['10.1.0.9', 'nas2.example.org:5202', 'fd00::9']
    """
    named = [one.strip() for one in text.split(",")]
    return list(dict.fromkeys(_address(one) for one in named if one))


def _address(text: str) -> NasAddress:
    found = _WITH_PORT.fullmatch(text)
    host = (found["bracketed"] or found["plain"]) if found else text
    port = int(found["port"] or PORT) if found else PORT
    if not (_is_address(host) or _NAME.fullmatch(host)) or not 0 < port < 2**16:
        raise SettingError(
            f"nas_addresses names {text!r}; it must be an address or a name, with or without a "
            "port: 10.1.0.9, nas1.example.org:5202 or [fd00::9]:5202"
        )
    return NasAddress(host, port)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def start_server(program: str, at: NasAddress) -> str | None:
    """Let the site's program start a server at an address; return what did, if any.

    Raises `SiteProgramError` where it fails.
    """
    if not program:
        return None
    site_program.run("nas-server", [program, at.host, str(at.port)], _START_SECONDS)
    return program


def words(sender: str, at: NasAddress, program: str, error: Exception) -> str:
    """Say in a sentence why a node could not measure with an address."""
    said = str(error)
    if _UNREACHED not in said:
        return f"{sender} to {at.name}: {said}"
    what_to_do = (
        f"{program} was to start one"
        if program
        else "start one there, or name the site's program that does in nas_server"
    )
    reason = said.rpartition(": ")[2]
    return (
        f"no iperf3 server answers {sender} at {at.host}, port {at.port} ({reason}): {what_to_do}"
    )
