"""OneFS's interface for programs (PowerScale, Isilon): what the NAS says of itself, and its jobs.

The addresses and names are those of Dell's SDK (https://github.com/Isilon/isilon_sdk_python, its
pages StatisticsApi, JobApi, StoragepoolApi). The certificate is checked; a site's own authority is
named by ``SSL_CERT_FILE``, as for everything that uses OpenSSL. User and password are in a netrc
file (netrc(5)) that only its owner may read: they are on no command line and in no result.
"""

import base64
import http.client
import json
import netrc
import os
import ssl
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

SECONDS = 30
_NETRC = "~/.netrc"
ENDED = "succeeded"
# States of a job that goes on by itself; all others are its end, or need an administrator.
GOING_ON = frozenset({"queued", "running", "paused_system", "paused_policy", "paused_priority"})


class OnefsError(RuntimeError):
    """The NAS cannot be asked, or refuses; the message says why."""


@dataclass(frozen=True)
class PoolUse:
    """How full a tier or a node pool is."""

    used_bytes: int
    total_bytes: int


class Onefs:
    """A NAS that answers for the user whom the netrc file names."""

    def __init__(self, url: str, netrc_file: Path | None = None) -> None:
        """Take the address, such as ``https://nas.example.org:8080``. Raises `OnefsError`."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.path.strip("/"):
            raise OnefsError(
                f"the NAS's address is {url!r}; it must be like https://nas.example.org:8080"
            )
        file = netrc_file or Path(os.environ.get("NETRC", _NETRC)).expanduser()
        self._host, self._port = parts.hostname, parts.port
        self._login = _login(file, parts.hostname)
        self._certificates = ssl.create_default_context()

    def statistics(self, keys: Sequence[str]) -> dict[str, float]:
        """Return the newest values of the whole NAS; those that it does not know are left out."""
        asked = [("key", key) for key in keys] + [("degraded", "true")]
        said = self._ask("GET", f"/platform/1/statistics/current?{urlencode(asked)}")
        return {
            one["key"]: float(one["value"])
            for one in said["stats"]
            if not one.get("error") and one.get("value") is not None
        }

    def keeps_access_times(self) -> bool:
        """Say whether it notes when a file is read."""
        said = self._ask("GET", "/platform/1/filesystem/settings/access-time")
        return bool(said["access_time"]["enabled"])

    def usage(self) -> dict[str, PoolUse]:
        """Return how full each tier and node pool is, by name."""
        said = self._ask("GET", "/platform/1/storagepool/storagepools")
        return {one["name"]: _usage(one["usage"]) for one in said["storagepools"]}

    def start(self, kind: str, paths: Sequence[str]) -> int:
        """Start a job of OneFS on some of its paths; returns its number."""
        body = {"type": kind, "paths": list(paths)}
        return int(self._ask("POST", "/platform/1/job/jobs", body)["id"])

    def wait_for(
        self,
        job: int,
        seconds: float,
        every: float = 5.0,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Wait until a job has done its work. Raises `OnefsError` where it does not."""
        until = time.monotonic() + seconds
        while (state := self._state(job)) != ENDED:
            if state not in GOING_ON:
                raise OnefsError(
                    f"OneFS's job {job} is {state}; `isi job jobs view {job}` on the NAS says more"
                )
            if time.monotonic() > until:
                raise OnefsError(f"OneFS's job {job} is still {state} after {seconds:.0f} s")
            sleep(every)

    def _state(self, job: int) -> str:
        (found,) = self._ask("GET", f"/platform/1/job/jobs/{job}")["jobs"]
        return str(found["state"])

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        # No other place is asked, whatever the answer says: the password would go there, too.
        asking = http.client.HTTPSConnection(
            self._host, self._port, timeout=SECONDS, context=self._certificates
        )
        headers = {"Authorization": self._login, "Content-Type": "application/json"}
        try:
            with closing(asking):
                sent = None if body is None else json.dumps(body)
                asking.request(method, path, body=sent, headers=headers)
                answer = asking.getresponse()
                text = answer.read().decode()
            if answer.status >= 300:
                raise OnefsError(f"{method} {path}: {answer.status}: {text[:2000].strip()}")
            return json.loads(text)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise OnefsError(f"{self._host} does not answer: {error}") from error


def _login(file: Path, host: str) -> str:
    try:
        mode = file.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise OnefsError(f"{file} can be read by others; chmod 600 {file}")
        known = netrc.netrc(file).authenticators(host)
    except (OSError, netrc.NetrcParseError) as error:
        raise OnefsError(f"no user and password for {host}: {error}") from error
    if known is None:
        raise OnefsError(f"{file} has no line `machine {host} login USER password PASSWORD`")
    user, _, password = known
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _usage(said: dict[str, str]) -> PoolUse:
    # Numbers as text: they are larger than some readers of JSON can hold.
    total, free = int(said["total_bytes"]), int(said["free_bytes"])
    return PoolUse(total - free, total)
