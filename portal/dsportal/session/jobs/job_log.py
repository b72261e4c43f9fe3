"""A job's log, shown as it grows.

``GET /portal/jobs/log?job=7&stream=out`` gives the end of the job's output and where to go on
(``file``, ``next``); with these as ``&file=...&offset=...`` it gives what has been added since. The
file is read as the user, and a part at a time.
"""

import codecs
import json
import os
import stat
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.jobs import words
from dsportal.session.jobs.records import is_job_id
from dsportal.session.jobs.routes import Jobs
from dsportal.session.jobs.slurm import LogFiles, SlurmRefused

_FIRST_BYTES = 64 * 1024
_MOST_BYTES = 256 * 1024
_MOST_KNOWN = 200


@dataclass(frozen=True)
class Piece:
    """A part of a file, in bytes of it."""

    text: str
    start: int
    next: int
    size: int
    file: str
    """Which file it is, whatever its name leads to later."""
    is_new: bool
    """Whether it goes on from nothing: it is the first look, or another file, or cut short."""


class NoLog(Exception):
    """There is nothing to show; the text is for the user."""


class Logs:
    """Knows where jobs write to, also when Slurm has forgotten them."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._files: dict[str, LogFiles] = {}

    async def files(self, job_id: str) -> LogFiles:
        """Return a job's files; raises `NoLog`."""
        known = self._files.get(job_id)
        if known is not None:
            return known
        try:
            found = await self.jobs.slurm.log_files(job_id)
        except SlurmRefused as error:
            raise NoLog(str(error)) from error
        if found is None:
            raise NoLog(words.NO_OUTPUT)
        if len(self._files) >= _MOST_KNOWN:
            self._files.pop(next(iter(self._files)))
        self._files[job_id] = found
        return found


def read_piece(path: Path, file: str = "", offset: int = 0, *, is_over: bool = False) -> Piece:
    """Read on from an offset, or the end of the file where that is another one than ``file``.

    ``is_over``: nothing more comes, not even the rest of a letter. Raises OSError, and `NoLog` for
    what is no plain file.
    """
    # A pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NoLog(words.no_plain_file(str(path)))
        found = f"{status.st_dev}:{status.st_ino}"
        is_new = file != found or offset > status.st_size
        start = max(0, status.st_size - _FIRST_BYTES) if is_new else offset
        opened.seek(start)
        data = opened.read(_MOST_BYTES)
    if is_new and start > 0:
        # From the beginning of a line.
        skipped = data.find(b"\n") + 1
        start, data = start + skipped, data[skipped:]
    text, rest = decoded(data, is_over and start + len(data) >= status.st_size)
    return Piece(text, start, start + len(data) - rest, status.st_size, found, is_new)


def decoded(data: bytes, is_all: bool = False) -> tuple[str, int]:
    r"""Decode what is complete, or all; return how many bytes are left for the next time.

    >>> decoded(b"a\xc3"), decoded(b"b")
    (('a', 1), ('b', 0))
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(data, is_all), len(decoder.getstate()[0])


def words_of(error: OSError, path: str) -> str:
    """Say what keeps a file from being read."""
    if isinstance(error, FileNotFoundError):
        return words.no_file(path)
    return words.unreadable_file(path, error.strerror)


class LogHandler(APIHandler):
    """Gives what a job wrote."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, logs: Logs) -> None:
        """Take what is known of the jobs' files."""
        self.logs = logs

    @web.authenticated
    async def get(self) -> None:
        """Give a part of the file, and whether the job can still write more."""
        job_id = self.get_query_argument("job")
        stream = self.get_query_argument("stream", "out")
        offset = self.get_query_argument("offset", "0")
        if not is_job_id(job_id) or stream not in ("out", "err") or not offset.isdecimal():
            raise web.HTTPError(400, "job and offset must be numbers, stream must be out or err.")
        # Asked first: what is written before the end is read after it.
        is_over = await self.logs.jobs.is_over(job_id)
        try:
            files = await self.logs.files(job_id)
            path = files.err if stream == "err" else files.out
            file = self.get_query_argument("file", "")
            read = partial(read_piece, Path(path), file, int(offset), is_over=bool(is_over))
            contents: Any = self.contents_manager
            piece = await contents.in_time(read, path)
        except NoLog as error:
            raise web.HTTPError(404, str(error)) from error
        except (OSError, ValueError) as error:
            why = words_of(error, path) if isinstance(error, OSError) else f"No file: {path!r}."
            raise web.HTTPError(404, why) from error
        told = {**asdict(piece), "path": path, "is_over": is_over}
        self.finish(json.dumps({**told, "has_err": files.err not in ("", files.out)}))


def routes(base_url: str, logs: Logs) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/jobs/log"), LogHandler, {"logs": logs})]
