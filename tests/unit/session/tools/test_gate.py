"""Whom the gate of a tool takes for the tool."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from dsportal.session.tools import gate

MINE = os.getuid()
OTHERS = MINE + 1

# Laid out as the kernel prints it (proc_net_tcp in its documentation).
TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000001 00:00000000 00000000  1000        0 101 1 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1001        0 102 1 0
   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 103 1 0
   3: 0100007F:1F90 0100007F:C351 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0
   4: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 104 1 0
"""


@pytest.mark.parametrize(
    ("listening", "accepted", "is_taken"),
    [
        ({MINE}, set(), True),
        ({MINE}, {MINE}, True),
        ({MINE, OTHERS}, set(), False),
        (set(), set(), False),
        ({MINE}, {OTHERS}, False),
        ({MINE}, {MINE, OTHERS}, False),
    ],
)
def test_a_port_on_which_others_listen_too_is_not_the_tools(
    monkeypatch: pytest.MonkeyPatch, listening: set[int], accepted: set[int], is_taken: bool
) -> None:
    async def connected() -> bool:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setattr(
            gate, "owners_of_port", lambda asked: listening if asked == port else None
        )
        monkeypatch.setattr(gate, "owners_of_connection", lambda asked, _: accepted)
        try:
            found = await gate._connected(port)
        finally:
            server.close()
        if found is not None:
            found[1].close()
        return found is not None

    assert asyncio.run(connected()) is is_taken


def test_it_is_the_program_that_has_accepted_a_connection_that_counts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            from_port = client.getsockname()[1]
            assert gate.owners_of_connection(port, from_port) == set()
            held, _ = server.accept()
            with held:
                server.close()
                assert gate.owners_of_port(port) == set()
                assert gate.owners_of_connection(port, from_port) == {MINE}


def test_the_kernels_table_is_read_by_its_columns(tmp_path: Path) -> None:
    (tmp_path / "tcp").write_text(TABLE, encoding="ascii")
    assert gate.owners_of_port(8080, tmp_path) == {1000}
    assert gate.owners_of_connection(8080, 50000, tmp_path) == {1001}
    assert gate.owners_of_connection(8080, 50001, tmp_path) == set()
    assert gate.owners_of_connection(50000, 8080, tmp_path) == {1002}


def test_a_tool_hears_that_somebody_has_left_before_all_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux ends such a connection with an error (ECONNRESET), and not with its end."""
    monkeypatch.setattr(gate, "owners_of_port", lambda _: {MINE})
    monkeypatch.setattr(gate, "owners_of_connection", lambda *_: {MINE})

    async def use() -> bytes:
        heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def tool(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"the first words of many")
            heard.set_result(await reader.read())
            writer.close()

        async with await asyncio.start_server(tool, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            path = tmp_path / "gate.sock"
            async with await gate._open_gate(path, port):
                client = socket.socket(socket.AF_UNIX)
                client.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(client, str(path))
                assert await loop.sock_recv(client, 3) == b"the"
                client.close()
                return await asyncio.wait_for(heard, 5)

    assert asyncio.run(use()) == b""
