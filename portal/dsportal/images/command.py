"""``portal image pull|list``: for users in a session's terminal, and for administrators."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dsportal.images import cache, key, programs, site
from dsportal.images.errors import ImageError, KeyRefused
from dsportal.images.image_folder import ImageFolder, ImageRecord
from dsportal.images.key import Key
from dsportal.images.pull import Pull
from dsportal.images.reference import Reference, parse

_SITE = Path("/etc/data-scientist-portal/images.json")
_NVIDIAS_USER = "$oauthtoken"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``portal image ...``; give its exit status."""
    return run(_parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="portal", description="The portal's commands for users.")
    parser.add_argument("--site", type=Path, default=_SITE, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    images = commands.add_parser("image", help="images that Apptainer runs")
    actions = images.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="show the images that are here, with where they come from")
    pull = actions.add_parser(
        "pull",
        help="bring an image from a registry, or go on with what was interrupted",
        epilog="Without a key the registry is asked as a stranger; where it wants one, you are "
        "asked for it, if you sit at a terminal.",
    )
    pull.add_argument("name", help="such as nvcr.io/nvidia/pytorch:24.05-py3")
    pull.add_argument("--own", action="store_true", help="into the own folder, not for everybody")
    pull.add_argument(
        "--user",
        default=_NVIDIAS_USER,
        help="who the registry takes the key from (%(default)s, as NVIDIA's wants)",
    )
    keys = pull.add_mutually_exclusive_group()
    keys.add_argument("--key-file", type=Path, help="a file with the key, readable by you alone")
    keys.add_argument("--key-stdin", action="store_true", help="the key is on the standard input")
    return parser


def run(options: argparse.Namespace) -> int:
    """Do it; what is refused is told in words."""
    programs.end_like_ctrl_c()
    os.umask(0o022)
    try:
        decided = site.load(options.site)
        if options.action == "list":
            return _list(decided)
        return _pull(decided, options)
    except ImageError as error:
        sys.stderr.write(f"{error}.\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. The same command goes on where this one was.\n")
        return 130


def _list(decided: site.Site) -> int:
    for images in _image_folders(decided):
        for record in images.records():
            size = f"{record.size / 10**9:.1f} GB"
            sys.stdout.write(
                f"{images.folder / record.file}\n    {record.reference}, {size}, {record.pulled_at}"
                f"\n    {record.digest}\n"
            )
    return 0


def _image_folders(decided: site.Site) -> list[ImageFolder]:
    folders = [Path(decided.cache)] if decided.cache else []
    if decided.own_folder:
        folders.append(Path.home() / decided.own_folder)
    return [ImageFolder(folder) for folder in folders]


def _pull(decided: site.Site, options: argparse.Namespace) -> int:
    reference = parse(options.name)
    is_shared = bool(decided.cache) and not options.own and reference.is_below(decided.shared)
    given = _given_key(options)
    bring = _into_cache if is_shared else _into_own_folder
    try:
        path, record = bring(decided, reference, given)
    except KeyRefused:
        if given is not None or not sys.stdin.isatty():
            raise
        path, record = bring(
            decided, reference, key.from_terminal(reference.registry, options.user)
        )
    sys.stdout.write(f"{path}\n{record.digest}\n")
    return 0


def _given_key(options: argparse.Namespace) -> Key | None:
    if options.key_file is not None:
        return key.from_file(options.key_file, options.user)
    return key.from_input(options.user) if options.key_stdin else None


def _into_cache(
    decided: site.Site, reference: Reference, given: Key | None
) -> tuple[Path, ImageRecord]:
    record = cache.ask(decided, reference, given)
    return Path(decided.cache) / record.file, record


def _into_own_folder(
    decided: site.Site, reference: Reference, given: Key | None
) -> tuple[Path, ImageRecord]:
    if not decided.own_folder:
        raise ImageError(
            f"This site has only images for everybody, and {reference.name} is not among them: "
            f"{', '.join(decided.shared) or 'no registry is'}. Ask an administrator"
        )
    folder = Path.home() / decided.own_folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    record = Pull(decided, ImageFolder(folder), _say).image(reference, given)
    return folder / record.file, record


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
