"""The deployment's roles in unit tests: their tasks in a play of their own, their programs."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import bootstrap

ROLES = bootstrap.DEPLOY / "ansible/roles"
_CONFIG = bootstrap.DEPLOY / "ansible/ansible.cfg"


def played(
    folder: Path,
    hosts: Mapping[str, object],
    variables: Mapping[str, object],
    tasks: Sequence[object],
    *options: str,
    **more: object,
) -> str:
    """Run tasks for hosts that all are this machine; return what Ansible says.

    Of all hosts in one run, because to start Ansible takes a second. ``more`` are further keywords
    of the play. A host may fail, but each is in the recap.
    """
    play = {"hosts": "all", "connection": "local", "gather_facts": False, "tasks": tasks, **more}
    (folder / "play.yml").write_text(json.dumps([play]))
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": variables}}))
    program = f"{bootstrap.deploy_environment()}/bin/ansible-playbook"
    done = subprocess.run(
        [program, *options, "-i", "hosts.json", "play.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(_CONFIG), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(re.findall(r"^\w+ +: ok=", done.stdout, re.M)) == len(hosts), done.stdout
    return done.stdout


def refusals(said: str) -> dict[str, str]:
    """Return what is said to each host that is refused."""
    found = re.finditer(r"^fa\w+: \[(\w+)\](.*?)(?=^\S|\Z)", said, re.M | re.S)
    return {match[1]: match[2] for match in found}


def loaded(file: Path) -> ModuleType:
    """Import a role's program, which is in no package."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
