"""Parquet files as tables: ``GET /portal/parquet/PATH?first=0`` gives the rows from there on.

What is read, and how many rows, is in `parquet_rows`, which runs for each answer.
"""

import asyncio
import os
import sys
from functools import partial
from typing import Any

from jupyter_server.base.handlers import APIHandler, path_regex
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.files.regular import open_regular

_ARGV = (sys.executable, "-I", "-m", "dsportal.session.files.parquet_rows")
_SECONDS = 60.0


class ParquetHandler(APIHandler):
    """GET handler of a Parquet file's rows."""

    @web.authenticated
    async def get(self, path: str) -> None:
        """Give them as JSON."""
        first = self.get_query_argument("first", "0")
        if not first.isdecimal() or len(first) > 15:
            raise web.HTTPError(400, f"first={first}: the number of a row is wanted, such as 200")
        contents: Any = self.contents_manager
        name = path.strip("/").rpartition("/")[2]
        if not await contents.is_shown(path, is_folder=False):
            raise web.HTTPError(404, f"There is no file {name}")
        place = contents.place(path)
        try:
            opened = await contents.in_time(partial(_opened, place), place, repeat=False)
        except OSError as error:
            raise web.HTTPError(403, f"{name} cannot be opened: {error.strerror}") from error
        self.set_header("Content-Type", "application/json")
        try:
            self.finish(await rows_of(opened, int(first)))
        except UnreadableTableError as error:
            raise web.HTTPError(422, f"{name} cannot be shown as a table: {error}") from error
        finally:
            os.close(opened)


def _opened(place: str) -> int:
    # What the user sees as a file may be a link of hers.
    return open_regular(os.path.realpath(place))[0]


class UnreadableTableError(Exception):
    """A file is no Parquet file, or takes too long; the message says which."""


async def rows_of(opened: int, first: int) -> bytes:
    """Return what `parquet_rows` prints of an open file. Raises `UnreadableTableError`."""
    reader = await asyncio.create_subprocess_exec(
        *_ARGV,
        str(first),
        stdin=opened,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        printed, said = await asyncio.wait_for(reader.communicate(), _SECONDS)
    except TimeoutError as error:
        raise UnreadableTableError(f"reading takes longer than {_SECONDS:.0f} s") from error
    finally:
        if reader.returncode is None:
            reader.kill()
    if reader.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        raise UnreadableTableError(lines[-1] if lines else f"ended with {reader.returncode}")
    return printed


def routes(base_url: str) -> list[tuple[str, type[APIHandler]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/parquet") + path_regex, ParquetHandler)]
