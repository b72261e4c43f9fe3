"""The launcher, its settings and its sudo rule, as files to install."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from jupyterhub_gpu_slurm.defaults import SlurmDefaults

INTERPRETER = "#!/usr/bin/python3 -IBS"
DEFAULT_PATH = Path("/usr/local/libexec/slurm-launcher")
# What sudoers(5) reads as it stands, without quotes.
_PATH = re.compile(r"/[A-Za-z0-9_./+-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# sudoers(5): what is written so stands for others, whoever defines it.
_ALIAS = re.compile(r"[A-Z][A-Z0-9_]*")
_MARK = re.compile(r"[A-Za-z0-9-]+")


def launcher_cmd(
    launcher: Path | str = DEFAULT_PATH, sudo: str = SlurmDefaults.sudo
) -> tuple[str, ...]:
    """Return the argv that runs the launcher as a user; ``{username}`` stands for the user."""
    return (sudo, "-n", "-u", "{username}", "--", str(launcher))


@dataclass(frozen=True)
class InstalledFile:
    """A file that belongs to root."""

    path: Path
    mode: int
    content: str


@dataclass(frozen=True)
class LauncherSetup:
    """Settings of the launcher and of its sudo rule.

    ``runas`` are users, and groups with a percent sign, as whom the hub may act; ``operator`` is
    the account that raises time limits, or empty.

    Raises:
        ValueError: a name or a path that a sudo rule cannot hold as it stands.

    """

    hub_user: str
    runas: tuple[str, ...]
    mark: str = "portal"
    slurm_conf: Path = Path(SlurmDefaults.config_file)
    bin_dir: Path = Path(SlurmDefaults.bin_dir)
    operator: str = ""
    path: Path = DEFAULT_PATH

    def __post_init__(self) -> None:
        if not self.runas:
            raise ValueError("as whom the hub may act is not said")
        if not _MARK.fullmatch(self.mark):
            raise ValueError(f"not letters, digits and hyphens: {self.mark!r}")
        accounts = [self.hub_user, *(name.removeprefix("%") for name in self.runas)]
        for name in (*accounts, *([self.operator] if self.operator else [])):
            if not _NAME.fullmatch(name) or _ALIAS.fullmatch(name):
                raise ValueError(f"not the name of a user or a group: {name!r}")
        for path in (self.path, self.slurm_conf, self.bin_dir):
            if not _PATH.fullmatch(str(path)) or ".." in path.parts:
                raise ValueError(f"not an absolute path of plain characters: {str(path)!r}")
        if "root" in (*accounts, self.operator):
            raise ValueError("the hub is not root, and never acts as root")

    def program(self, source: str) -> InstalledFile:
        """Return the launcher; ``source`` is the text of ``slurm/launcher.py``."""
        return InstalledFile(self.path, 0o755, f"{INTERPRETER}\n{source}")

    def settings(self) -> InstalledFile:
        """Return what the launcher reads, beside it."""
        values = {
            "slurm_conf": str(self.slurm_conf),
            "bin_dir": str(self.bin_dir),
            "mark": self.mark,
            **({"operator": self.operator} if self.operator else {}),
        }
        path = self.path.with_name(f"{self.path.name}.json")
        return InstalledFile(path, 0o644, f"{json.dumps(values)}\n")

    def sudo_rule(self, folder: Path = Path("/etc/sudoers.d")) -> InstalledFile:
        """Return the rule: one program, without arguments, as these users and nobody else."""
        runas = ", ".join([*self.runas, *([self.operator] if self.operator else [])])
        content = (
            f"# The hub may run one program, without arguments, as these users; nothing else.\n"
            f"Defaults:{self.hub_user} env_reset, !setenv, !lecture, !mail_always\n"
            f'{self.hub_user} ALL=({runas}) NOPASSWD: {self.path} ""\n'
        )
        # sudo leaves files aside that have a dot in their name.
        return InstalledFile(folder / self.path.name.replace(".", "-"), 0o440, content)
