"""The server part of jupyterlab-search-replace, with limits.

It has none of its own: it holds all that ripgrep finds in memory, and waits for as long as that
takes, so a search in a large folder, or a link to one on somebody's page, could end the session for
want of memory. It goes where a name that is quoted twice leads, and fails at a line that is not
UTF-8. Here an answer ends after `MOST_BYTES`, and an error comes after `SECONDS`.

Tried with jupyterlab_search_replace 1.1.3.
"""

import asyncio
import os
import stat
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any
from urllib.parse import unquote

from jupyter_server.base.handlers import path_regex
from jupyter_server.utils import url_path_join
from jupyterlab_search_replace.handlers import RouteHandler
from jupyterlab_search_replace.search_engine import SearchEngine
from tornado import web

MOST_BYTES = 4 << 20
"""Of what ripgrep says of its matches, as JSON."""
MOST_LINES = 1000
"""Of one file."""
SECONDS = 60.0
_MOST_WORDS = 4096
# Larger files are data: one line of theirs may be all of it.
_BOUNDS = ("--max-filesize=20M", "--no-messages")
# Lines and names that are not UTF-8 are told in Base64.
_NOT_TEXT = (b'"lines":{"bytes"', b'"path":{"bytes"')


class BoundedSearch(SearchEngine):  # type: ignore[misc]  # it has no types
    """Runs ripgrep for as long as its answer is of use."""

    async def _execute(self, cmd: list[str], cwd: str | None = None) -> tuple[int, str]:
        program, *asked = cmd
        process = await asyncio.create_subprocess_exec(
            program, *_BOUNDS, *asked, cwd=cwd, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        assert process.stdout  # noqa: S101  they are pipes
        assert process.stderr  # noqa: S101
        words = asyncio.create_task(process.stderr.read(_MOST_WORDS))
        try:
            async with asyncio.timeout(SECONDS):
                found, is_whole = await _head(process.stdout, MOST_BYTES)
                if is_whole:
                    said = (await words).decode(errors="replace")
                    return _outcome(await process.wait(), found, said)
                return 0, _lines(found)
        except TimeoutError:
            return 2, f"The search took more than {SECONDS:g} s: choose a smaller folder."
        finally:
            words.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _head(stream: asyncio.StreamReader, most: int) -> tuple[bytes, bool]:
    """Read the beginning of a stream; say, too, whether it was all."""
    parts, size = [], 0
    while part := await stream.read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > most:
            return b"".join(parts), False
    return b"".join(parts), True


def _outcome(code: int, found: bytes, said: str) -> tuple[int, str]:
    """As the extension has it: 1 is "nothing found", and what is wrong is said otherwise.

    What ripgrep could not read, or a folder without files, is no error of the search.
    """
    if b'"type":"match"' in found:
        return 0, _lines(found)
    return (1, _lines(found)) if found else (code, said)


def _lines(found: bytes) -> str:
    """Leave out what is not text, and what was cut off."""
    lines = found.split(b"\n")[:-1]
    kept = [line for line in lines if not any(mark in line for mark in _NOT_TEXT)]
    return b"\n".join(kept).decode(errors="replace")


class SearchHandler(RouteHandler):  # type: ignore[misc]
    """Answers this session's own pages only, below the folder of its files."""

    def initialize(self) -> None:
        """Take the search that has bounds."""
        self._engine = BoundedSearch(self.contents_manager)

    @web.authenticated
    async def get(self, path: str = "") -> None:
        """Search below a folder."""
        self.check_xsrf_cookie()
        await self._look_at(path)
        lines = self.get_query_argument("max_count", "100")
        if not lines.isascii() or not lines.isdecimal() or int(lines) > MOST_LINES:
            raise web.HTTPError(400, f"max_count must be a number up to {MOST_LINES}.")
        await super().get(path)

    @web.authenticated
    async def post(self, path: str = "") -> None:
        """Replace in files: what is none would not be read to its end."""
        contents: Any = self.contents_manager
        await self._look_at(path)
        for match in self.get_json_body()["matches"]:
            place = contents.place(f"{path}/{match['path']}")
            status: os.stat_result = await contents.in_time(lambda at=place: os.stat(at), place)
            if not stat.S_ISREG(status.st_mode):
                raise web.HTTPError(400, f"{match['path']} is not a file.")
        await super().post(path)

    async def _look_at(self, path: str) -> None:
        """Refuse what is not below the folder of the files, or does not answer."""
        # It is unquoted once more where it is used.
        if any(unquote(part) != part or part == ".." for part in path.split("/")):
            raise web.HTTPError(404, f"There is no folder {path}")
        contents: Any = self.contents_manager
        await contents.look_at(contents.place(path))


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    route = url_path_join(server.web_app.settings["base_url"], "search") + path_regex
    server.web_app.add_handlers(".*$", [(route, SearchHandler)])
