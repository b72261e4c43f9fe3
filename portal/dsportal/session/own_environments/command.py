"""``portal env create|list|remove``: for users, in terminals, jobs and notebooks."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from dsportal.session.own_environments import words
from dsportal.session.own_environments.making import Maker, Order
from dsportal.session.own_environments.records import (
    DEFAULT_FOLDER,
    FOLDER_VARIABLE,
    EnvironmentFolder,
    OwnEnvironment,
    OwnEnvironmentError,
    folder_from,
    size_of,
    size_words,
)

_HEADINGS = ("NAME", "ON", "SIZE", "PACKAGES", "WHERE")


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Run ``portal env ...``; give its exit status."""
    options = _parsed(sys.argv[1:] if arguments is None else arguments)
    _end_like_ctrl_c()
    try:
        folder = EnvironmentFolder(_place(environment))
        maker = Maker(folder, environment, _say)
        if options.action == "list":
            _list(folder, is_json=options.json)
        elif options.action == "remove":
            maker.remove(options.name)
        else:
            on, packages = tuple(options.on), tuple(options.packages)
            files = tuple(os.path.abspath(file) for file in options.requirement)
            maker.create(Order(options.name, on, packages, files))
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
        "list": actions.add_parser("list", help="show them, with their sizes"),
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
        help="the module whose packages it has besides, such as pytorch (default: plain Python)",
    )
    parser.add_argument(
        "-r",
        "--requirement",
        action="append",
        default=[],
        metavar="FILE",
        help="a file that lists packages, as pip reads it",
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="what pip installs")


def _place(environment: Mapping[str, str]) -> Path:
    text = environment.get(FOLDER_VARIABLE, DEFAULT_FOLDER)
    if not text:
        raise OwnEnvironmentError(words.OFF)
    return folder_from(text, environment.get("HOME", ""), environment.get("USER", ""))


def _list(folder: EnvironmentFolder, *, is_json: bool) -> None:
    found = folder.all()
    sizes = [size_of(one.path) for one in found]
    if is_json:
        _print_json(found, sizes)
        return
    if not found:
        _say(words.NONE)
        return
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
    return one.name, on, size_words(size), packages or "-", str(one.path)


def _print_json(found: list[OwnEnvironment], sizes: list[int]) -> None:
    told = [
        {
            "name": one.name,
            "path": str(one.path),
            "on": list(one.record.on) if one.record else [],
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
