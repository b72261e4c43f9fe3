"""Commands for the admin: ``python -m dsportal.cli doctor|backup|restore|size|settings``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dsportal import reference
from dsportal.backup import command as backup
from dsportal.doctor import command as doctor
from dsportal.settings_file import SettingsError, check_part, load
from dsportal.sizing import command as sizing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; give its exit status."""
    options = _parser().parse_args(arguments)
    if options.command == "doctor":
        return doctor.run(options)
    if options.command in ("backup", "restore"):
        return backup.run(options)
    if options.command == "size":
        return sizing.run(options)
    if options.action == "reference":
        return _print_reference(options.file)
    return _check(options.file, options.part)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="portal", description="The portal's own commands.")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor.add_options(commands.add_parser("doctor", help="say how this host is, and what to do"))
    backup.add_options(
        commands.add_parser("backup", help="write the hub's and Slurm's state into one file"),
        commands.add_parser("restore", help="put back what a backup holds"),
    )
    sizing.add_options(commands.add_parser("size", help="say how much storage GPUs need"))
    settings = commands.add_parser("settings", help="the settings file portal.toml")
    actions = settings.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="say all that is wrong with a file")
    check.add_argument("file", type=Path)
    check.add_argument(
        "--part",
        action="store_true",
        help="the file has some of the settings, as JSON, such as portal_settings of an inventory",
    )
    page = actions.add_parser("reference", help="write the page that describes every key")
    page.add_argument("file", type=Path, nargs="?", help="where to (default: standard output)")
    return parser


def _check(file: Path, is_part: bool) -> int:
    try:
        if is_part:
            check_part(file.read_text(encoding="utf-8"))
        else:
            load(file)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{file}: good\n")
    return 0


def _print_reference(file: Path | None) -> int:
    if file is None:
        sys.stdout.write(reference.page())
    else:
        file.write_text(reference.page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
