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

_ANSIBLE = bootstrap.DEPLOY / "ansible"
ROLES = _ANSIBLE / "roles"


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
    inventory = folder / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": variables}}))
    said = played_with(folder, inventory, tasks, *options, **more)
    assert len(re.findall(r"^\w+ +: ok=", said, re.M)) == len(hosts), said
    return said


def played_with(
    folder: Path, inventory: Path, tasks: Sequence[object], *options: str, **more: object
) -> str:
    """Run tasks for all hosts of an inventory, as if each were this machine.

    Roles in ``folder/roles`` take the place of ours of the same name.
    """
    play = {"hosts": "all", "gather_facts": False, "tasks": tasks, **more}
    (folder / "play.yml").write_text(json.dumps([play]))
    program = f"{bootstrap.deploy_environment()}/bin/ansible-playbook"
    here = ("-e", "ansible_connection=local")
    done = subprocess.run(
        [program, *options, *here, "-i", str(inventory), "play.yml"],
        cwd=folder,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(_ANSIBLE / "ansible.cfg"),
            # As a deployment does (bootstrap.run_ansible): modules share a process, where each
            # would have one that first compiles what it needs of Ansible.
            "ANSIBLE_STRATEGY": "one_process",
            "ANSIBLE_STRATEGY_PLUGINS": str(_ANSIBLE / "plugins/strategy"),
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        check=False,
    )
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
