"""``portal env create|list|remove``: for users, in terminals, jobs and notebooks."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from dsportal.session.files.mounts import Mounts
from dsportal.session.files.quota import QuotaUnknown, Storage, StorageUse
from dsportal.session.own_environments import words
from dsportal.session.own_environments.folders import (
    FOLDERS_VARIABLE,
    EnvironmentFolders,
    folders_told,
)
from dsportal.session.own_environments.making import Maker, Order
from dsportal.session.own_environments.records import (
    OwnEnvironment,
    OwnEnvironmentError,
)
from dsportal.session.own_environments.sizes import size_of, size_words

_HEADINGS = ("NAME", "ON", "SIZE", "IN", "PACKAGES", "WHERE")


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Run ``portal env ...``; give its exit status."""
    options = _parsed(sys.argv[1:] if arguments is None else arguments)
    _end_like_ctrl_c()
    # What mounts log is for the administrators.
    logging.getLogger("dsportal").addHandler(logging.NullHandler())
    try:
        folders = asyncio.run(_answering(environment))
        maker = Maker(folders, environment, _say)
        if options.action == "list":
            _list(folders, environment, is_json=options.json)
        elif options.action == "remove":
            maker.remove(options.name)
        else:
            on, packages = tuple(options.on), tuple(options.packages)
            files = tuple(os.path.abspath(file) for file in options.requirement)
            order = Order(options.name, on, packages, files, options.folder, options.conda)
            maker.create(order)
    except OwnEnvironmentError as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    chooser = argparse.ArgumentParser(
        prog="portal env", description="Environments of your own, with the packages you need."
    )
    actions = chooser.add_subparsers(dest="action", required=True)
    parsers = {
        "create": actions.add_parser(
            "create", help="make one: a kernel in JupyterLab, a module in terminals and jobs"
        ),
        "list": actions.add_parser("list", help="show them, their sizes and your quota"),
        "remove": actions.add_parser("remove", help="remove one and all that is in it"),
    }
    _add_create_options(parsers["create"])
    parsers["list"].add_argument("--json", action="store_true", help="for programs")
    parsers["remove"].add_argument("name", metavar="NAME")
    if not arguments or arguments[0] not in parsers:
        return chooser.parse_args(arguments)
    # Not by the chooser, which takes no packages after an option.
    action = argparse.Namespace(action=arguments[0])
    return parsers[arguments[0]].parse_intermixed_args(arguments[1:], action)


def _add_create_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="letters, digits and . _ -")
    parser.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="MODULE",
        help="the module to build on, such as pytorch (default: plain Python)",
    )
    parser.add_argument(
        "-r",
        "--requirement",
        action="append",
        default=[],
        metavar="FILE",
        help="a file that lists packages, as pip reads it, or conda",
    )
    parser.add_argument(
        "--in",
        dest="folder",
        default="",
        metavar="PLACE",
        help="where to store it, such as home or isilon: one of the places that `list` shows",
    )
    parser.add_argument(
        "--conda",
        action="store_true",
        help="have conda make it, or mamba or micromamba, where your site has one of them",
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="what is installed")


async def _answering(environment: Mapping[str, str]) -> EnvironmentFolders:
    """Return the folders whose file servers answer: whatever touches another would hang."""
    folders = folders_told(environment.get(FOLDERS_VARIABLE, ""))
    if folders is None:
        raise OwnEnvironmentError(words.OFF)
    mounts = Mounts()
    await mounts.look()
    answering = []
    for folder in folders:
        trouble = mounts.trouble_on(str(folder.path))
        if trouble is None:
            answering.append(folder)
        elif folder is folders.first:
            raise OwnEnvironmentError(f"{trouble.words()}.")
        else:
            sys.stderr.write(words.NO_ANSWER.format(name=folder.name, reason=trouble.words()))
    return EnvironmentFolders(tuple(answering))


def _list(folders: EnvironmentFolders, environment: Mapping[str, str], *, is_json: bool) -> None:
    found = folders.environments()
    sizes = [size_of(one.path) for one in found]
    if is_json:
        _print_json(found, sizes)
        return
    if found:
        _print_table(found, sizes)
    else:
        _say(words.NONE)
    _say("")
    for line in asyncio.run(_storage_lines(folders, environment)):
        _say(line)


def _print_table(found: list[OwnEnvironment], sizes: list[int]) -> None:
    rows = [_HEADINGS, *map(_row, found, sizes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        _say("  ".join(cells).rstrip())
    for one in found:
        if one.trouble:
            _say(f"{one.name}: {one.trouble}")


def _row(one: OwnEnvironment, size: int) -> tuple[str, ...]:
    on = one.record.on_words if one.record else "?"
    packages = " ".join(one.record.packages) if one.record else ""
    return one.name, on, size_words(size), one.folder.name, packages or "-", str(one.path)


async def _storage_lines(folders: EnvironmentFolders, environment: Mapping[str, str]) -> list[str]:
    """Say how full each place is that the user can write to."""
    storage = Storage(Path("/"), {}, environment)
    lines = []
    for folder in folders:
        if folder.trouble:
            continue
        try:
            lines.append(_use_words(folder.name, await storage.use(str(folder.existing))))
        except QuotaUnknown:
            lines.append(words.USE_UNKNOWN.format(name=folder.name))
    return lines


def _use_words(name: str, use: StorageUse) -> str:
    text = words.USED_OF_QUOTA if use.is_quota else words.USED
    # What is set aside for root is neither used nor free.
    used, size = size_words(use.used), size_words(use.used + use.free)
    return text.format(name=name, used=used, size=size)


def _print_json(found: list[OwnEnvironment], sizes: list[int]) -> None:
    told = [
        {
            "name": one.name,
            "path": str(one.path),
            "in": one.folder.name,
            "on": list(one.record.on) if one.record else [],
            "conda": one.record.conda if one.record else False,
            "packages": list(one.record.packages) if one.record else [],
            "size": size,
            "trouble": one.trouble,
        }
        for one, size in zip(found, sizes, strict=True)
    ]
    sys.stdout.write(json.dumps(told, indent=2) + "\n")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _end_like_ctrl_c() -> None:
    """Let the end of a terminal, a job or a session undo what is half done."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, stop)
