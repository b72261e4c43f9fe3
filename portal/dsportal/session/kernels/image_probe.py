"""The probe of an image: it is asked what is in it where it can see nothing of the user's.

An image is asked once in a session, since pages look for kernels again and again. The answer of a
SIF is kept in the home until the file changes.
"""

import asyncio
import hashlib
import json
import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dsportal.containers import contents, run
from dsportal.containers.images import ImageFile, ImageFileError

_SECONDS = 60.0
# Where it finds the user's settings of it, and may unpack.
_OWN = ("HOME", "TMPDIR")
_ANSWERS = Path(".cache/data-scientist-portal/images.json")
_QUESTION = hashlib.sha256(" ".join(contents.COMMAND).encode()).hexdigest()[:12]
# Apptainer's words may be red and begin with their level.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LEVEL = re.compile(r"^[A-Z]+: +")


async def ask(image: ImageFile, apptainer: str, environment: Mapping[str, str]) -> str:
    """Ask an image what is in it; `dsportal.containers.contents.parsed` reads the answer.

    Raises `ImageFileError` where it does not say.
    """
    try:
        process = await _begun(image, apptainer, environment)
    except OSError as error:
        raise ImageFileError(f"No image can be run here: {apptainer}: {error.strerror}.") from error
    try:
        async with asyncio.timeout(_SECONDS):
            answer, said = await asyncio.gather(_first(process.stdout), _first(process.stderr))
            await process.wait()
    except TimeoutError as error:
        raise ImageFileError(
            f"{image.path} did not say within {_SECONDS:g} seconds what is in it."
        ) from error
    finally:
        await _end(process)
    if contents.parsed(answer) is None:
        raise ImageFileError(f"{image.path} cannot be used. Apptainer says: {last_words(said)}")
    return answer


async def _begun(
    image: ImageFile, apptainer: str, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    apptainers_own = {name: environment[name] for name in _OWN if name in environment}
    return await asyncio.create_subprocess_exec(
        *run.probe_argv(apptainer, str(image.path), contents.COMMAND),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=run.exec_environment(apptainers_own),
        cwd="/",
        start_new_session=True,
    )


async def _first(stream: asyncio.StreamReader | None) -> str:
    # An image may write without an end: until its time is over, nobody keeps that.
    read = b""
    while stream is not None and (part := await stream.read(contents.MOST_BYTES)):
        read += part[: contents.MOST_BYTES - len(read)]
    return read.decode(errors="replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    # The group, since Apptainer's own helpers are in it.
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def last_words(said: str) -> str:
    """Return the last of what Apptainer said, which is its reason."""
    lines = [line for line in _COLOURS.sub("", said).splitlines() if line.strip()]
    if not lines:
        return "nothing"
    reason = _LEVEL.sub("", lines[-1])
    return "".join(sign for sign in reason if sign.isprintable())[:300]


class Answers:
    """The answers of images, by their stamps; those of files are kept in the home."""

    def __init__(self, home: Path) -> None:
        self._file = home / _ANSWERS
        self._known: dict[str, str] | None = None
        self._of_folders: dict[str, str] = {}

    def of(self, image: ImageFile) -> str | None:
        """Return an answer that is known."""
        if self._known is None:
            self._known = self._read()
        return (self._of_folders if image.is_folder else self._known).get(image.stamp)

    def keep(self, image: ImageFile, answer: str) -> None:
        """Keep an answer, for the next sessions too where the home takes it."""
        if image.is_folder:
            self._of_folders[image.stamp] = answer
            return
        others = f"{image.path}:"
        known = {
            stamp: kept for stamp, kept in self._read().items() if not stamp.startswith(others)
        }
        self._known = known | {image.stamp: answer}
        fresh = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.write_text(json.dumps({_QUESTION: self._known}), encoding="utf-8")
            fresh.replace(self._file)
        except OSError:  # a full home: the next session asks again
            with suppress(OSError):
                fresh.unlink()

    def _read(self) -> dict[str, str]:
        try:
            read = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        # A release that asks something else wants other answers.
        answers = read.get(_QUESTION) if isinstance(read, dict) else None
        if not isinstance(answers, dict):
            return {}
        return {str(stamp): str(answer) for stamp, answer in answers.items()}
