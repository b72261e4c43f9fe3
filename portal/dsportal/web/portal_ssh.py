#!/usr/bin/env python3
"""Join ssh and a session of the portal: the ProxyCommand of your ~/.ssh/config.

    portal_ssh.py https://portal.example.org/user/alice/

It needs Python 3.9 or later, its package websockets (14 or later), a key pair in ~/.ssh, such as
id_ed25519 and id_ed25519.pub, and a token of the portal in a file beside it: portal-token, or
portal-NAME-token for a session with a name.
"""

import asyncio
import json
import os
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin, urlsplit

KEYS = Path.home() / ".ssh"
FOLDER = Path(__file__).parent
CHUNK_BYTES = 65536
# What the portal answers in the place of a session that takes SSH.
ANSWERS = {
    401: "the token is invalid or has expired: create another one",
    403: "the token is invalid or has expired, or does not open this session: create another one",
    404: "this session does not take SSH connections",
    424: "the session is not running: start it in the portal",
    503: "the session is not running: start it in the portal",
}


def main() -> None:
    """Connect, and carry bytes until one side ends."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} ADDRESS OF THE SESSION")
    try:
        reason = asyncio.run(carry(address_of(sys.argv[1]), read_token(sys.argv[1]), public_keys()))
    except ImportError:
        install = f"{sys.executable} -m pip install websockets"
        sys.exit(f"portal_ssh: the package websockets is missing: run '{install}'")
    if reason:
        sys.exit(f"portal_ssh: {reason}")


async def carry(address: str, token: str, keys: "list[str]") -> str:
    """Be a pipe between ssh and the session; return why it ended, if that is said."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    headers = {"Authorization": f"token {token}"}
    try:
        socket = await connect(address, additional_headers=headers, compression=None, max_size=None)
    except InvalidStatus as error:
        status = error.response.status_code
        return ANSWERS.get(status, f"the portal answers with status {status}")
    except (OSError, TimeoutError) as error:
        return f"{urlsplit(address).netloc} cannot be reached: {error}"
    await socket.send(json.dumps({"keys": keys}))
    loop = asyncio.get_running_loop()

    def send_input() -> None:
        with suppress(ConnectionClosed):
            while data := os.read(0, CHUNK_BYTES):
                asyncio.run_coroutine_threadsafe(socket.send(data), loop).result()
        asyncio.run_coroutine_threadsafe(socket.close(), loop)

    # A thread, because Windows lets nobody wait for input in another way.
    threading.Thread(target=send_input, daemon=True).start()
    with suppress(ConnectionClosed):
        async for message in socket:
            if isinstance(message, bytes):
                await asyncio.to_thread(write, message)
    return socket.close_reason or ""


def address_of(session: str) -> str:
    """Return where a session takes connections; ends the program for what is no address."""
    parts = urlsplit(session)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        sys.exit(f"portal_ssh: {session} is not an address such as https://host/user/name/")
    folder = session if session.endswith("/") else f"{session}/"
    return re.sub("^http", "ws", urljoin(folder, "portal/ssh"))


def read_token(session: str) -> str:
    """Read a session's token; ends the program where there is none, or others can read it."""
    named = re.search("/user/[^/]+/([^/]+)/?$", urlsplit(session).path)
    file = FOLDER / (f"portal-{named[1]}-token" if named else "portal-token")
    try:
        token = file.read_text(encoding="ascii").strip()
        mode = file.stat().st_mode
    except (OSError, ValueError) as error:
        sys.exit(f"portal_ssh: no token: {error}")
    if os.name == "posix" and mode & 0o077:
        sys.exit(f"portal_ssh: others can read {file}: run 'chmod 600 {file}'")
    return token


def public_keys() -> "list[str]":
    """Read what ssh may log in with; ends the program where there is nothing."""
    found = []
    for file in sorted(KEYS.glob("*.pub")):
        words = file.read_text(encoding="utf-8", errors="replace").split()
        if len(words) >= 2 and not words[0].endswith("-cert-v01@openssh.com"):
            found.append(" ".join(words[:2]))
    if not found:
        sys.exit(f"portal_ssh: no public key (*.pub) in {KEYS}: run 'ssh-keygen -t ed25519'")
    return found[:20]


def write(data: bytes) -> None:
    """Give everything to ssh."""
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
