"""Commands for setting the spawner up: ``python -m jupyterhub_gpu_slurm install-launcher``."""

import argparse
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from jupyterhub_gpu_slurm.defaults import SlurmDefaults
from jupyterhub_gpu_slurm.launcher_files import DEFAULT_PATH, InstalledFile, LauncherSetup

VISUDO = "/usr/sbin/visudo"


class InstallationError(Exception):
    """The launcher cannot be installed; the message says why."""


def check_folder(folder: Path) -> None:
    """Refuse a place whose content somebody but root could change.

    Raises:
        InstallationError: it names the folder.

    """
    for place in (folder, *folder.parents):
        if not place.exists():
            continue
        found = place.stat()
        is_open = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        # With the sticky bit nobody replaces what is root's.
        is_kept = place != folder and found.st_mode & stat.S_ISVTX
        if found.st_uid != 0 or (is_open and not is_kept):
            raise InstallationError(f"{place} can be changed by others than root")


def check_rule(file: Path) -> None:
    """Refuse a sudo rule that sudo would not take.

    Raises:
        InstallationError: with the words of visudo.

    """
    try:
        done = subprocess.run(
            [VISUDO, "-cf", str(file)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise InstallationError(f"{VISUDO} is not there: install sudo first") from error
    if done.returncode != 0:
        raise InstallationError(f"visudo refuses the rule: {(done.stderr or done.stdout).strip()}")


def write(wanted: InstalledFile, *, is_rule: bool = False) -> bool:
    """Put a file in its place in one step; ``False`` where it is there already."""
    path = wanted.path
    if path.is_file() and not path.is_symlink():
        found = path.stat()
        is_same = (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (0, 0, wanted.mode)
        if is_same and path.read_text(encoding="utf-8") == wanted.content:
            return False
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # A name with a dot, which sudo does not read.
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        new = Path(file.name)
        try:
            file.write(wanted.content)
            file.flush()
            os.fchmod(file.fileno(), wanted.mode)
            if is_rule:
                check_rule(new)
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    return True


def install(setup: LauncherSetup, rules: Path) -> None:
    """Write launcher and settings, then the rule that lets the hub run them; say what is new."""
    source = Path(__file__).with_name("slurm") / "launcher.py"
    for wanted in (setup.program(source.read_text(encoding="utf-8")), setup.settings()):
        check_folder(wanted.path.parent)
        report(wanted, is_new=write(wanted))
    rule = setup.sudo_rule(rules)
    check_folder(rule.path.parent)
    report(rule, is_new=write(rule, is_rule=True))


def report(wanted: InstalledFile, *, is_new: bool) -> None:
    """Say what became of a file."""
    done = "written" if is_new else "unchanged"
    sys.stdout.write(f"{done}: {wanted.path} (root, {wanted.mode:04o})\n")


def show(setup: LauncherSetup, rules: Path) -> None:
    """Print what would be written; of the launcher, which is long, where it comes from."""
    source = Path(__file__).with_name("slurm") / "launcher.py"
    program = setup.program("")
    head = f"# {program.path} (root, {program.mode:04o})\n{program.content}"
    sys.stdout.write(f"{head}# then: {source}\n\n")
    for wanted in (setup.settings(), setup.sudo_rule(rules)):
        sys.stdout.write(f"# {wanted.path} (root, {wanted.mode:04o})\n{wanted.content}\n")


def parser() -> argparse.ArgumentParser:
    """Return what the command line may say."""
    made = argparse.ArgumentParser(prog="python -m jupyterhub_gpu_slurm", description=__doc__)
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser(
        "install-launcher",
        help="write the program through which the hub acts as a user, and its sudo rule (root)",
    ).add_argument
    add("--hub-user", required=True, help="the account that the hub runs as")
    add(
        "--runas",
        required=True,
        action="append",
        metavar="NAME",
        help="as whom the hub may act: a user, or a group as %%NAME; may be given more than once",
    )
    add("--mark", default="portal", help="c.GpuSlurmSpawner.hub_mark (%(default)s)")
    add("--slurm-conf", type=Path, default=Path(SlurmDefaults.config_file), help="(%(default)s)")
    add(
        "--bin-dir",
        type=Path,
        default=Path(SlurmDefaults.bin_dir),
        help="with sbatch (%(default)s)",
    )
    add("--operator", default="", help="the account that extends sessions; none: they are not")
    add("--path", type=Path, default=DEFAULT_PATH, help="of the launcher (%(default)s)")
    add("--sudoers", type=Path, default=Path("/etc/sudoers.d"), help="folder (%(default)s)")
    add("--print", action="store_true", help="show what would be written, and write nothing")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked; 2 where it makes no sense, 1 where it cannot be done."""
    commands = parser()
    given = commands.parse_args(arguments)
    try:
        setup = LauncherSetup(
            given.hub_user,
            tuple(given.runas),
            given.mark,
            given.slurm_conf,
            given.bin_dir,
            given.operator,
            given.path,
        )
    except ValueError as error:
        commands.error(str(error))
    if given.print:
        show(setup, given.sudoers)
        return 0
    if os.geteuid() != 0:
        sys.stderr.write("install-launcher: only root can write these files; --print shows them\n")
        return 1
    try:
        install(setup, given.sudoers)
    except (InstallationError, OSError) as error:
        sys.stderr.write(f"install-launcher: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
