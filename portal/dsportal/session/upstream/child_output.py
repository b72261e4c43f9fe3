"""Output of a kernel's child processes: over a socket file, not a TCP port.

A file of ipykernel's configuration (``--config``): the kernel's own Python reads it before the
kernel opens anything, whichever Python that is, 2.7 too. So nothing is installed beside ipykernel.

Tried with ipykernel 4.10.1 and 7.4.0, whose ``IOPubThread`` listens on a free port of the loopback
address, whatever ``transport`` says, and reads messages of any size there before it asks for their
secret (see ipython/ipykernel#1107). Everybody on the node can connect to it.
"""

import os
import warnings

import zmq
from ipykernel.iostream import IOPubThread
from zmq.eventloop.zmqstream import ZMQStream

_PROTOCOL = b"ipc://"
_LINGER_MS = 3000  # as ipykernel has it: a child that ends waits so long for its last output


def _listen(thread):
    # type: (IOPubThread) -> None
    thread._pipe_uuid = os.urandom(16)
    pipe = thread.socket.context.socket(zmq.PULL)
    pipe.linger = 0
    try:
        thread._pipe_address = _address(thread)  # type: ignore[attr-defined]
        pipe.bind(thread._pipe_address)  # type: ignore[attr-defined]
    except (ValueError, zmq.ZMQError) as error:
        warnings.warn("The output of forked processes is lost: %s" % error, stacklevel=2)  # noqa: UP031
        thread._pipe_flag = False
        pipe.close()
        return
    thread._pipe_in = ZMQStream(pipe, thread.io_loop)
    thread._pipe_in.on_recv(thread._handle_pipe_msg)


def _connect(thread):
    # type: (IOPubThread) -> tuple[zmq.Context[zmq.Socket[bytes]], zmq.Socket[bytes]]
    # A context does not survive a fork.
    context = zmq.Context()
    pipe = context.socket(zmq.PUSH)
    pipe.linger = _LINGER_MS
    pipe.connect(thread._pipe_address)  # type: ignore[attr-defined]
    return context, pipe


def _address(thread):
    # type: (IOPubThread) -> str
    """Name a file beside the one for the kernel's own output, in the user's own folder."""
    endpoint = thread.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0")
    if not endpoint.startswith(_PROTOCOL):
        raise ValueError("the kernel's transport is not ipc")
    return str(endpoint.decode("utf-8") + "-children")


IOPubThread._setup_pipe_in = _listen  # type: ignore[method-assign]
IOPubThread._setup_pipe_out = _connect  # type: ignore[method-assign]
