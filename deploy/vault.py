"""How Ansible gets the password of an inventory's encrypted files: options of its own names.

Standard library only, as `bootstrap`. The password itself is on no command line: Ansible reads the
file, or asks at the terminal.
"""

import argparse
import os
from pathlib import Path

import bootstrap


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a program take the two options."""
    options = parser.add_mutually_exclusive_group()
    options.add_argument(
        "--vault-password-file",
        type=Path,
        metavar="FILE",
        help="the password of files encrypted with ansible-vault",
    )
    options.add_argument(
        "--ask-vault-pass", action="store_true", help="ask for that password at the terminal"
    )


def arguments(given: argparse.Namespace) -> list[str]:
    """Return what ansible-playbook is told, which runs in another folder.

    Raises:
        DeploymentError: there is no terminal to ask at.

    """
    if given.vault_password_file:
        return [f"--vault-password-file={given.vault_password_file.expanduser().resolve()}"]
    if not given.ask_vault_pass:
        return []
    if not has_terminal():
        raise bootstrap.DeploymentError(
            "there is no terminal at which --ask-vault-pass could ask; give --vault-password-file"
        )
    return ["--ask-vault-pass"]


def has_terminal() -> bool:
    """Tell whether there is one to read a password from, whatever stdin is."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
