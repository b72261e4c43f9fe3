"""TensorBoard on a unix socket. Run by TensorBoard's own interpreter, without our package.

    PYTHON -I server.py --socket=S --path-prefix=/user/NAME/tensorboard/ID --logdir=L \
        --title=T

It says on its standard output when it listens, and ends when its standard input does: never after
the session that started it.

Plain TensorBoard listens on TCP, which on a shared node is open to everybody, starts a
data server on a second port, and notes its runs in a folder in ``/tmp`` that all may
write to. ``TensorBoard.launch`` writes no such note, and ``load_fast`` decides about the
data server.
"""

import argparse
import gc
import os
import sys
from pathlib import Path
from typing import Any

from tensorboard import program
from werkzeug import serving


class _RequestHandler(serving.WSGIRequestHandler):  # type: ignore[misc]
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "session"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Keep the session's log for what matters."""


class UnixSocketServer(serving.ThreadedWSGIServer, program.TensorBoardServer):  # type: ignore[misc]
    """TensorBoard's server, reachable by the owner of the socket alone."""

    daemon_threads = True

    def __init__(self, path: Path, wsgi_app: Any) -> None:
        """Listen. Werkzeug takes ``unix://`` for a host and removes a stale socket."""
        self._path = path
        mask = os.umask(0o177)
        try:
            super().__init__(f"unix://{path}", 0, wsgi_app, _RequestHandler)
        finally:
            os.umask(mask)

    def get_url(self) -> str:
        """Where it listens, for TensorBoard's log line."""
        return f"unix://{self._path}"


def main() -> int:
    """Serve until the standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--path-prefix", required=True)
    parser.add_argument("--logdir", type=Path, required=True)
    parser.add_argument("--title", required=True)
    arguments = parser.parse_args()

    # What is made from here on stays; to look for garbage among it is a sixth of the time.
    gc.disable()
    tensorboard = program.TensorBoard(
        server_class=lambda wsgi_app, flags: UnixSocketServer(arguments.socket, wsgi_app)
    )
    tensorboard.configure(
        argv=("tensorboard",),
        logdir=str(arguments.logdir),
        path_prefix=arguments.path_prefix,
        # Of several tabs, which is which.
        window_title=arguments.title,
        load_fast="false",
        # Runs of a training appear as they are written.
        reload_interval=5.0,
    )
    tensorboard.launch()
    gc.freeze()
    gc.enable()
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    # Nobody reads what is written there later.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdin.buffer.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
