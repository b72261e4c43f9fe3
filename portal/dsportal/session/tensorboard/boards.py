"""The TensorBoards of a session: one for a folder, started when it is asked for.

A *board* is a folder's TensorBoard. It *sleeps* when nobody has looked at it for long, or when its
process has ended by itself: the next request wakes it. One that its user *stops* is forgotten, so
that a page left open does not start it again.
"""

import asyncio
import hashlib
import logging
import os
import secrets
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dsportal.session.periodic import repeat
from dsportal.session.tensorboard import words
from dsportal.session.tensorboard.log_folders import shown
from dsportal.session.threads import in_thread

log = logging.getLogger(__name__)

PROGRAM = Path(__file__).with_name("server.py")

_FILE_SECONDS = 10.0
_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_LOOK_SECONDS = 15.0
_JUST_USED_SECONDS = 60.0


class BoardError(Exception):
    """There is no TensorBoard to be had; the text is a sentence for the user."""


@dataclass(frozen=True)
class Kit:
    """Configuration with which boards are started."""

    python: str
    """The interpreter of TensorBoard's environment."""
    runtime_folder: Path
    """Only the user can enter it: the sockets are here."""
    address: str
    """Below which the boards are, as the browser knows it, with a slash at its end."""
    most: int
    """How many may run at once."""
    idle_seconds: float | None
    """``None``: until the session ends."""
    program: Path = PROGRAM


class Board:
    """The TensorBoard of one folder."""

    def __init__(self, name: str, folder: Path, kit: Kit) -> None:
        self.name, self.folder = name, folder
        self.id = hashlib.sha256(bytes(folder)).hexdigest()[:12]
        # Not by the folder: one that is stopped while it starts may have its process a while longer
        # than the folder's next one.
        self.socket = kit.runtime_folder / f"tensorboard-{secrets.token_hex(6)}.sock"
        self.address = f"{kit.address}{self.id}/"
        self.used_at = 0.0
        self._argv = [
            kit.python,
            "-I",  # nothing of the user's is imported
            str(kit.program),
            f"--socket={self.socket}",
            f"--path-prefix={self.address.rstrip('/')}",
            f"--logdir={folder}",
            f"--title={shown(name)} - TensorBoard",
        ]
        self._process: Process | None = None
        self._is_wanted = False
        self._changing = asyncio.Lock()

    @property
    def is_awake(self) -> bool:
        """Whether it runs, or is about to."""
        return self._is_wanted and (self._process is None or self._process.returncode is None)

    def reserve(self) -> None:
        """Count as awake from now on."""
        self._is_wanted = True

    async def wake(self) -> None:
        """Start its process unless that runs; raises `BoardError`."""
        self.reserve()
        async with self._changing:
            if self._process is not None and self._process.returncode is None:
                return
            self._process = None
            try:
                self._process = await self._started()
            except BaseException:
                # What did not come to run takes nobody's place.
                self._is_wanted = False
                raise

    async def sleep(self) -> None:
        """End its process."""
        self._is_wanted = False
        async with self._changing:
            if self._process is not None:
                await _end(self._process)
            self._process = None
            self.socket.unlink(missing_ok=True)

    async def _started(self) -> Process:
        # It ends when the pipe to its input does, so never after the session.
        try:
            # Who starts it waits until it is read, however long its file server takes.
            look = in_thread(partial(os.path.exists, self._argv[0]))
            await asyncio.wait_for(look, _FILE_SECONDS)
            process = await asyncio.create_subprocess_exec(*self._argv, stdin=PIPE, stdout=PIPE)
        except OSError as error:
            log.warning("TensorBoard for %s did not start: %s", self.folder, error)
            raise self._failed() from error
        try:
            is_listening = await _is_listening(process)
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if is_listening:
            return process
        await _end(process)
        log.warning("TensorBoard for %s did not start: code %s", self.folder, process.returncode)
        raise self._failed()

    def _failed(self) -> BoardError:
        return BoardError(words.not_started(shown(self.name)))


async def _is_listening(process: Process) -> bool:
    """Wait until it says so."""
    if process.stdout is None:
        return False
    try:
        return bool(await asyncio.wait_for(process.stdout.readline(), _START_SECONDS))
    except TimeoutError:
        return False


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


class Boards:
    """All TensorBoards of a session."""

    def __init__(self, kit: Kit, now: Callable[[], float] = time.monotonic) -> None:
        self._kit = kit
        self._now = now
        self._boards: dict[str, Board] = {}
        self._tending: asyncio.Task[None] | None = None

    def awake(self) -> Sequence[Board]:
        """List those that run, in the order in which they were first opened."""
        return [board for board in self._boards.values() if board.is_awake]

    async def open(self, name: str, folder: Path) -> Board:
        """Return the board of a folder, awake; raises `BoardError`."""
        board = Board(name, folder, self._kit)
        board = self._boards.setdefault(board.id, board)
        return await self._woken(board)

    async def use(self, board_id: str) -> Board | None:
        """Return a board that was opened before, awake; ``None`` for one that was not, or stopped.

        Raises `BoardError`.
        """
        board = self._boards.get(board_id)
        return await self._woken(board) if board else None

    def find(self, board_id: str) -> Board | None:
        """Return a board that was opened before, as it is."""
        return self._boards.get(board_id)

    async def stop(self, board_id: str) -> bool:
        """End and forget a board; say whether there was one."""
        board = self._boards.pop(board_id, None)
        if board is not None:
            await board.sleep()
        return board is not None

    async def stop_all(self) -> None:
        """End all, with the session."""
        await asyncio.gather(*(self.stop(board_id) for board_id in list(self._boards)))
        if self._tending is not None:
            self._tending.cancel()

    async def _woken(self, board: Board) -> Board:
        longest = None if board.is_awake else self._one_too_many()
        # Before anything is waited for: the next one must not take this one's place.
        board.used_at = self._now()
        board.reserve()
        if longest is not None:
            log.info("TensorBoard for %s sleeps: another needs its place", longest.folder)
            await longest.sleep()
        await board.wake()
        if self._tending is None and self._kit.idle_seconds is not None:
            self._tending = asyncio.create_task(self._tend(self._kit.idle_seconds))
        return board

    def _one_too_many(self) -> Board | None:
        """Return which must sleep before another wakes: the one unused for longest.

        Raises `BoardError` when that was looked at just now.
        """
        awake = self.awake()
        if len(awake) < self._kit.most:
            return None
        longest = min(awake, key=lambda board: board.used_at)
        if self._now() - longest.used_at < _JUST_USED_SECONDS:
            raise BoardError(words.too_many(len(awake)))
        return longest

    async def _tend(self, idle_seconds: float) -> None:
        """Let those sleep that nobody looks at."""

        async def look() -> None:
            for board in self.awake():
                if self._now() - board.used_at >= idle_seconds:
                    log.info("TensorBoard for %s sleeps: nobody looks at it", board.folder)
                    await board.sleep()

        every = min(_LOOK_SECONDS, idle_seconds / 4)
        await repeat(look, lambda: every, log, "A TensorBoard could not be put to sleep")
