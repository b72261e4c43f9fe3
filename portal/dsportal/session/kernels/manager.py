"""Kernel specs of a session, and what the user is told when a kernel is killed for its memory."""

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_core.paths import jupyter_data_dir, jupyter_path
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from traitlets import Dict, Unicode, default

from dsportal.session.kernels.configuration import with_configuration, without_folder
from dsportal.session.kernels.icons import folder_with_tile
from dsportal.session.kernels.image_specs import SEPARATOR
from dsportal.session.kernels.images import SessionImages
from dsportal.session.usage.memory import JobMemory

log = logging.getLogger(__name__)

MEMORY_WATCH = "portal_memory_watch"
"""Where the server's settings keep the one MemoryWatch."""

_PYTHON3 = "python3"
# Where the languages' own pictures are; the second are Debian's.
_PICTURES = {
    "python": str(Path(sys.prefix, "share/jupyter/kernels", _PYTHON3)),
    "R": "/usr/share/jupyter/kernels/ir",
}
# Two windows on one kernel hear of its end within this time.
_SAME_EVENT_SECONDS = 5.0


class SessionKernels(KernelSpecManager):
    """The settings' kernels, the images', the user's own, and Python 3 with this interpreter."""

    # The native kernel's spec comes with its package; to look for it another way would
    # import IPython into the server, 200 ms at the first page.
    ensure_native_kernel = False

    offered = Dict(help="The settings' kernels: name -> what its kernel.json would say.").tag(
        config=True
    )

    session_images: SessionImages | None = None
    """The images, once the server knows of them."""

    own_specs: Callable[[], dict[str, dict[str, Any]]] | None = None
    """The kernels of the user's own environments, once the server knows of them."""

    configuration = Unicode(help="A file that ipykernel reads; images see it too.").tag(config=True)

    pictures = Unicode(help="A folder for the pictures of the settings' kernels.").tag(config=True)

    @default("kernel_dirs")
    def _kernel_dirs(self) -> list[str]:
        return jupyter_path("kernels")

    def find_kernel_specs(self) -> dict[str, str]:
        """Find all kernels, with the folder of each one's pictures.

        Of two with one name, the user's own is before the settings', and theirs before the
        machine's.
        """
        found = super().find_kernel_specs()
        offered = {name: self._pictures_of(name) for name in self._offered}
        return found | offered | self._users_own(found)

    @property
    def _offered(self) -> dict[str, Any]:
        images = self.session_images.specs() if self.session_images is not None else {}
        own = self.own_specs() if self.own_specs is not None else {}
        return {**own, **images, **self.offered}

    def _users_own(self, found: dict[str, str]) -> dict[str, str]:
        home = jupyter_data_dir()
        return {name: path for name, path in found.items() if Path(path).is_relative_to(home)}

    def _pictures_of(self, name: str) -> str:
        offered = self._offered
        spec, place = offered[name], list(offered).index(name)
        title = spec["display_name"].rpartition(SEPARATOR)[2]
        if spec["language"] == "python" and self.pictures:
            try:
                return folder_with_tile(Path(self.pictures, name), title, place)
            except OSError as error:
                log.warning("No picture for the kernel %s: %s", name, error)
        return _PICTURES[spec["language"]]

    @property
    def _own_folder(self) -> Path:
        return Path(sys.prefix, "share/jupyter/kernels", _PYTHON3)

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Give a kernel's spec, with what keeps ipykernel from opening a port of its own.

        JupyterLab offers no debugger for other kernels: theirs listens on a port for everybody.
        """
        spec = self._spec_as_written(kernel_name)
        spec.argv = without_folder(spec.argv)
        if self.configuration:
            argv = with_configuration(spec.argv, self.configuration)
            if argv == spec.argv:
                spec.metadata = {**spec.metadata, "debugger": False}
            spec.argv = argv
        return spec

    def _spec_as_written(self, kernel_name: str) -> KernelSpec:
        """Give the spec as the settings, its file or its image have it.

        ``python3`` of this environment says ``python``, which is somebody else's on the
        session's PATH, and is named after its package.
        """
        found = super().find_kernel_specs()
        offered = self._offered
        if kernel_name in offered and kernel_name not in self._users_own(found):
            spec = offered[kernel_name]
            return self.kernel_spec_class(resource_dir=self._pictures_of(kernel_name), **spec)
        folder = self._own_folder
        if kernel_name != _PYTHON3 or found.get(_PYTHON3) != str(folder):
            return super().get_kernel_spec(kernel_name)
        spec = self.kernel_spec_class.from_resource_dir(str(folder))
        spec.argv = [sys.executable, *spec.argv[1:]]
        spec.display_name = "Python 3"
        return spec


class MemoryWatch:
    """Tells the end of a kernel for its memory from any other end.

    The job has one counter for all its processes, so a rise is put down to the kernel
    whose end is noticed first after it.
    """

    def __init__(self, memory: JobMemory) -> None:
        self._memory = memory
        self._explained = memory.kills()
        self._last: tuple[str, float] | None = None

    def stopped_for_memory(self, kernel_id: str, now: float) -> bool:
        """Whether this kernel's unexpected end, noticed now, was for the job's memory."""
        kills = self._memory.kills()
        if kills > self._explained:
            self._explained = kills
            self._last = (kernel_id, now)
            return True
        if self._last is None:
            return False
        last_id, last_time = self._last
        return kernel_id == last_id and now - last_time < _SAME_EVENT_SECONDS

    def message(self) -> str:
        """Word it for the user."""
        limit_gib = self._memory.limit_gib()
        size = f"its {round(limit_gib, 1):g} GiB of memory" if limit_gib else "its memory"
        return (
            f"The kernel was stopped because the session used more than {size}; its variables "
            "are gone. Use less memory, shut down notebooks that you do not need, or start a "
            "session with more GPUs: each brings memory of its own."
        )


class SessionKernelConnection(ZMQChannelsWebsocketConnection):
    """A notebook's connection to its kernel, which says why the kernel died."""

    _running: Any = None

    def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
        """Pass on what the kernel says, and note which cell runs."""
        _, parts = self.session.feed_identities(outgoing_msg)
        # Header, parent header, ...; the kernel announces each cell with execute_input.
        header, parent_header = (_bytes(part) for part in parts[1:3])
        if b'"execute_input"' in header:
            self._running = self.session.unpack(parent_header)
        super().handle_outgoing_message(stream, outgoing_msg)

    def on_kernel_restarted(self) -> None:
        """Tell the reason first: after the restart, the cell takes no more output."""
        self._tell_reason()
        super().on_kernel_restarted()  # type: ignore[no-untyped-call]

    def on_restart_failed(self) -> None:
        """Tell the reason first, as for a restart."""
        self._tell_reason()
        super().on_restart_failed()  # type: ignore[no-untyped-call]

    def _tell_reason(self) -> None:
        watch: MemoryWatch = self.websocket_handler.settings[MEMORY_WATCH]
        if watch.stopped_for_memory(self.kernel_id, time.monotonic()):
            self.write_stderr(watch.message(), self._running or {})  # type: ignore[no-untyped-call]


def _bytes(part: Any) -> bytes:
    # zmq gives frames for large parts, bytes for small ones.
    return bytes(part.bytes if hasattr(part, "bytes") else part)
