"""An SSH connection: a process of the node's OpenSSH server, fed with what arrives."""

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from dsportal.session.ssh.server_config import authorized_keys, server_config

log = logging.getLogger(__name__)

_PLACES = "/usr/sbin:/usr/local/sbin:/sbin"
_CHUNK_BYTES = 65536
_STOP_SECONDS = 5.0


class SshError(Exception):
    """There is no connection; the message is for the user."""


class SshServer:
    """Starts a process for each connection. ``folder`` is one that only the user can enter."""

    def __init__(
        self, folder: Path, home: Path, environment: Mapping[str, str], places: str = _PLACES
    ) -> None:
        self._folder = folder
        self._host_key = home / ".local/share/data-scientist-portal/ssh/host_ed25519_key"
        self._environment = environment
        self._places = places

    async def connect(self, keys: object) -> "SshConnection":
        """Start the process for a connection that one of these public keys opens.

        Raises `KeysError`, and `SshError` where the node has no OpenSSH server.
        """
        allowed = authorized_keys(keys)
        program = shutil.which("sshd", path=self._places)
        if program is None:
            raise SshError(f"{os.uname().nodename} has no OpenSSH server: ask the administrators")
        await self._make_host_key()
        own = Path(tempfile.mkdtemp(prefix="ssh-", dir=self._folder))
        try:
            _write(own / "authorized_keys", allowed)
            _write(own / "sshd_config", server_config(own, self._host_key, self._environment))
            process = await asyncio.create_subprocess_exec(
                *(program, "-i", "-e", "-f", str(own / "sshd_config")),
                env=dict(self._environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except BaseException:
            shutil.rmtree(own)
            raise
        return SshConnection(process, own)

    async def _make_host_key(self) -> None:
        """Make the key by which ssh knows the user's sessions again; it stays in the home."""
        if self._host_key.exists():
            return
        self._host_key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._host_key.parent) as folder:
            new = Path(folder) / "key"
            process = await asyncio.create_subprocess_exec(
                *("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "session", "-f", str(new)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            said, _ = await process.communicate()
            if process.returncode != 0:
                raise SshError(f"no host key: {said.decode(errors='replace').strip()}")
            # Another session of the user may have made one meanwhile.
            with suppress(FileExistsError):
                os.link(new, self._host_key)


class SshConnection:
    """A process of sshd, and what goes in and out."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process, self._folder = process, folder
        self._telling = asyncio.create_task(self._tell())

    async def write(self, data: bytes) -> None:
        """Hand over what the client sent; returns when there is room for more."""
        into = self._process.stdin
        if into is not None and not into.is_closing():
            with suppress(ConnectionError):  # it has ended: `run` says so
                into.write(data)
                await into.drain()

    async def run(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send what the server says, until it ends."""
        out = self._process.stdout
        while out is not None and (data := await out.read(_CHUNK_BYTES)):
            await send(data)

    async def close(self) -> None:
        """Hang up: what the user's programs do then is as at the end of any SSH connection."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        with suppress(ProcessLookupError):
            self._process.terminate()
        await self._process.wait()
        if self._process.stdin is not None:
            # Why it was closed is of interest to nobody; unasked, Python 3.11 complains of it.
            with suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(self._process.stdin.wait_closed(), _STOP_SECONDS)
        await self._telling
        shutil.rmtree(self._folder)

    async def _tell(self) -> None:
        """Put what the server says of itself into the session's log."""
        if self._process.stderr is not None:
            async for line in self._process.stderr:
                log.info("sshd: %s", line.decode(errors="replace").strip())


def _write(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")
