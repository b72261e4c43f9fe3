"""Deploying, as an administrator does, from the test instance's inventory or a changed copy."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.instance import ROOT

INVENTORIES = ROOT / "deploy/ansible/inventories"


def copied(folder: Path, **variables: object) -> Path:
    """Return a copy of the test instance's inventory, below ``folder``, with other variables."""
    copy = folder / "site"
    shutil.copytree(INVENTORIES / "test", copy)
    set_variables(copy, **variables)
    return copy


def set_variables(inventory: Path, **variables: object) -> None:
    """Set these in the last file of an inventory, which counts; what it had is gone."""
    (inventory / "group_vars/all/z.yml").write_text(json.dumps(variables))


def deploy(
    inventory: Path | str, *options: str, seconds: int = 600, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run ``deploy/up``; return how it ended and what it said."""
    return subprocess.run(
        [str(ROOT / "deploy/up"), str(inventory), *options],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def said(done: "subprocess.CompletedProcess[str]") -> str:
    """Return what was said, as one line: Ansible breaks lines where it likes."""
    return " ".join(done.stdout.split())
