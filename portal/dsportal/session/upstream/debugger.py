"""A kernel's debugger without a port: its parts speak over pairs of sockets that have no name.

A file of ipykernel's configuration, as ``child_output.py`` is; it is read by the kernel's own
Python, 2.7 too, which has no debugger.

Tried with ipykernel 6.17.0 and debugpy 1.6.3 (Python 3.11), 6.29.5 and 1.8.21 (3.8), 7.4.0 and
1.8.22 (3.11, 3.13). They have no setting for any of this: debugpy's adapter listens on a TCP port
of localhost, where whoever connects runs code as the user, since it asks its clients for no token;
its other ports' token is on its command line; and the cells that are debugged are written to a
folder in ``/tmp`` whose name another user can foresee, and make before.

Child processes are not debugged: JupyterLab has nothing that would let them continue.
"""

import array
import os
import socket
import subprocess
import sys
import threading

# What pydevd says at its import, of breakpoints in the part of the standard library that is frozen,
# would be in the session's log with each kernel.
_QUIET = "PYDEVD_DISABLE_FILE_VALIDATION"
_said_before = os.environ.get(_QUIET)
os.environ[_QUIET] = "1"
try:
    from asyncio import Future  # noqa: F401 - in types
    from collections.abc import Callable  # noqa: F401

    import debugpy.server  # which puts pydevd on the path
    import pydevd
    from _pydev_bundle import pydev_monkey
    from ipykernel import compiler, debugger
    from tornado.iostream import IOStream, StreamClosedError
except ImportError:
    debugger = None  # this kernel has none
if _said_before is None:
    del os.environ[_QUIET]
else:
    os.environ[_QUIET] = _said_before

_FOLDER = os.path.dirname(os.path.abspath(__file__))
# What ipykernel has debugpy listen on, and connects to: the adapter, wherever that is.
_ADDRESS = ("adapter", 0)
_READ_BYTES = 65536


class DebugAdapter(object):  # noqa: UP004 - as Python 2.7 has it
    """The process between ipykernel and pydevd; either gets its end of a pair of sockets."""

    def __init__(self):
        # type: () -> None
        self._held = []  # type: list[socket.socket]

    def start(self):
        # type: () -> None
        """Start it. It ends with this process; an interrupt of the kernel's group is not for it."""
        self._control, theirs = socket.socketpair()
        self._held.append(self._control)
        library = os.path.dirname(os.path.dirname(debugpy.__file__))
        number = theirs.fileno()
        program = os.path.join(_FOLDER, "debug_adapter.py")
        with open(os.devnull, "r+b") as null:
            self._process = subprocess.Popen(
                [sys.executable, "-I", program, library, str(number)],
                stdin=null,
                stdout=null,
                stderr=null,
                pass_fds=(number,),
                start_new_session=True,
            )
        theirs.close()

    def connection(self):
        # type: () -> socket.socket
        """Give one end of a new pair; the adapter gets the other one."""
        ours, theirs = socket.socketpair()
        rights = array.array("i", [theirs.fileno()])
        self._control.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        theirs.close()
        self._held.append(ours)
        return ours

    def forget(self):
        # type: () -> None
        """Close all in a forked process, which may stay longer than the kernel."""
        for one in self._held:
            one.close()


class AdapterStream(object):  # noqa: UP004
    """Stands for ZMQ's stream and its socket, which ipykernel speaks to the adapter through."""

    def __init__(self, adapter, on_received):
        # type: (DebugAdapter, Callable[[str], None]) -> None
        self.socket = self
        self._adapter = adapter
        self._on_received = on_received
        self._stream = None  # type: IOStream | None

    def connect(self, endpoint):
        # type: (str) -> None
        """Begin a conversation: the debugger was switched on."""
        self._stream = IOStream(self._adapter.connection())
        self._read(self._stream)

    def disconnect(self, endpoint):
        # type: (str) -> None
        """End it."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def getsockopt(self, option):
        # type: (int) -> bytes
        """Name the other end, which is always the same."""
        return b""

    def send_multipart(self, parts):
        # type: (tuple[bytes, bytes]) -> None
        """Send what follows the other end's name."""
        self._stream.write(parts[1])  # type: ignore[union-attr]

    def _read(self, stream):
        # type: (IOStream) -> None
        try:
            received = stream.read_bytes(_READ_BYTES, partial=True)
        except StreamClosedError:
            return
        stream.io_loop.add_future(received, lambda _: self._hand_on(stream, received))  # type: ignore[arg-type]

    def _hand_on(self, stream, received):
        # type: (IOStream, Future[bytes]) -> None
        # The adapter leaves with its last answer: the stream may be closed, and this still unsaid.
        if received.exception() is None and stream is self._stream:
            try:
                self._on_received(received.result().decode("utf-8"))
            finally:
                self._read(stream)


def _client(log, stream, on_event):
    # type: (object, object, Callable[[object], None]) -> debugger.DebugpyClient
    client = _upstream_client(log, None, on_event)
    client.debugpy_stream = AdapterStream(_adapter, client.receive_dap_frame)
    client.debugpy_host, client.debugpy_port = _ADDRESS[0], str(_ADDRESS[1])
    return client


def _listen(address, **options):
    # type: (object, object) -> object
    if address != _ADDRESS:  # the user's own program asks
        return _upstream_listen(address, **options)
    _adapter.start()
    connection = _adapter.connection()
    connect, pydevd.start_client = pydevd.start_client, lambda host, port: connection
    try:
        pydevd.settrace(
            host=_ADDRESS[0],
            port=_ADDRESS[1],
            suspend=False,
            wait_for_ready_to_run=False,
            patch_multiprocessing=False,
            notify_stdin=False,
            dont_trace_start_patterns=(os.path.dirname(debugpy.__file__),),
        )
    finally:
        pydevd.start_client = connect
    os.register_at_fork(after_in_child=_after_fork)
    return address


def _after_fork():
    # type: () -> None
    # A breakpoint in a fork would stop it for ever.
    _adapter.forget()
    pydev_monkey._on_forked_process(setup_tracing=False)
    sys.settrace(None)
    threading.settrace(None)


def _folder():
    # type: () -> str
    return os.path.join(_FOLDER, "ipykernel_%d" % os.getpid())  # noqa: UP031


if debugger is not None:
    _adapter = DebugAdapter()
    _upstream_client, debugger.DebugpyClient = debugger.DebugpyClient, _client
    _upstream_listen, debugpy.listen = debugpy.listen, _listen
    compiler.get_tmp_directory = debugger.get_tmp_directory = _folder
