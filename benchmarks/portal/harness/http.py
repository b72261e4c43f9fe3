"""A cheap HTTP client: on a machine with few cores, whoever asks must not be what is measured."""

import asyncio
from collections.abc import AsyncIterator, Mapping


async def request(
    port: int, method: str, path: str, headers: Mapping[str, str], body: str = ""
) -> tuple[int, str]:
    """Ask 127.0.0.1 once; return the status and the body as it came."""
    reader, writer = await _send(port, method, path, headers, body)
    try:
        head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return _status(head), rest.decode(errors="replace")


async def lines(port: int, path: str, headers: Mapping[str, str]) -> AsyncIterator[str]:
    """Read an answer that comes line by line, as a browser reads a stream of events."""
    reader, writer = await _send(port, "GET", path, headers, "")
    try:
        while line := await reader.readline():
            yield line.decode(errors="replace").rstrip()
    finally:
        writer.close()


async def _send(
    port: int, method: str, path: str, headers: Mapping[str, str], body: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    every = {"Host": f"127.0.0.1:{port}", "Connection": "close", **headers}
    if method != "GET":
        every["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in every.items())
    writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}".encode())
    await writer.drain()
    return reader, writer


def _status(head: bytes) -> int:
    words = head.split(None, 2)
    if len(words) < 2:
        raise EOFError("the connection was closed without an answer")
    return int(words[1])
