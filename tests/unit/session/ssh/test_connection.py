"""With a program in the place of sshd, which the machine of these tests need not have."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.ssh.connection import SshError, SshServer
from dsportal.session.ssh.server_config import KeysError

KEYS = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBPb"]
ECHO = "#!/bin/sh\necho started >&2\nexec cat\n"
SHOW = '#!/bin/sh\ncat "$4"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a host key, as after the first connection."""
    key = tmp_path / ".local/share/data-scientist-portal/ssh/host_ed25519_key"
    key.parent.mkdir(parents=True)
    key.touch()
    return tmp_path


def server(home: Path, program: str = ECHO) -> SshServer:
    places, folder = home / "sbin", home / "run"
    places.mkdir()
    folder.mkdir()
    (places / "sshd").write_text(program)
    (places / "sshd").chmod(0o755)
    return SshServer(folder, home, {"PATH": "/usr/bin:/bin"}, places=str(places))


def test_bytes_go_in_and_come_out(home: Path) -> None:
    async def act() -> None:
        arrived = asyncio.Queue[bytes]()
        connection = await server(home).connect(KEYS)
        running = asyncio.create_task(connection.run(arrived.put))
        await connection.write(b"SSH-2.0-x\r\n")
        assert await arrived.get() == b"SSH-2.0-x\r\n"
        await connection.close()
        await running
        assert list((home / "run").iterdir()) == []

    asyncio.run(act())


def test_the_server_finds_its_settings_and_keys(home: Path) -> None:
    async def act() -> None:
        arrived: list[bytes] = []

        async def keep(data: bytes) -> None:
            arrived.append(data)

        connection = await server(home, SHOW).connect(KEYS)
        await connection.run(keep)
        (folder,) = (home / "run").iterdir()
        assert b"AuthorizedKeysFile" in b"".join(arrived)
        assert (folder / "authorized_keys").read_text() == f"{KEYS[0]}\n"
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
        assert folder.stat().st_mode & 0o777 == 0o700
        await connection.close()

    asyncio.run(act())


def test_what_has_ended_takes_no_more(home: Path) -> None:
    complaints: list[dict[str, Any]] = []

    async def act() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
        connection = await server(home, "#!/bin/sh\nexit 1\n").connect(KEYS)
        for _ in range(100):
            await connection.write(b"x" * 65536)
        await connection.close()

    asyncio.run(act())
    gc.collect()
    assert complaints == []


def test_a_node_without_the_server_says_so(home: Path) -> None:
    async def act() -> None:
        with pytest.raises(SshError, match="has no OpenSSH server"):
            await SshServer(home, home, {}, places=str(home)).connect(KEYS)

    asyncio.run(act())


def test_without_keys_nothing_starts(home: Path) -> None:
    async def act() -> None:
        with pytest.raises(KeysError):
            await server(home).connect([])
        assert list((home / "run").iterdir()) == []

    asyncio.run(act())
