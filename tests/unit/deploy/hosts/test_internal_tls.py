"""Whether TLS within the cluster waits for sessions of the portal that is there."""

import re
from pathlib import Path

import yaml

from tests import roles

ROLE = roles.ROLES / "portal"
# What is there of the portal's settings.
SETTINGS: dict[str, str | None] = {
    "new": None,
    "interrupted": "",
    "without": "[hub]\ninternal_ssl = false\n",
    "with": "[hub]\ninternal_ssl = true\n",
}


def test_it_waits_only_where_a_portal_runs_without(tmp_path: Path) -> None:
    """Slurm does not answer, so sessions may run. An interrupted first run has left no settings."""
    hosts: dict[str, dict[str, object]] = {}
    for name, text in SETTINGS.items():
        file = tmp_path / f"{name}.toml"
        hosts[name] = {"portal_settings_file": str(file)}
        if text is not None:
            file.write_text(text)
    given: dict[str, object] = {}
    for part in ("defaults", "vars"):
        given |= yaml.safe_load((ROLE / part / "main.yml").read_text())
    del given["portal_settings_file"]
    given |= {"portal_slurm_bin_dir": str(tmp_path), "portal_slurm_conf": "/nowhere"}
    tasks = [
        {"import_tasks": str(ROLE / "tasks/internal_ssl.yml")},
        {"debug": {"msg": "{{ portal_internal_ssl_is_postponed | bool }}"}},
    ]
    said = roles.played(tmp_path, hosts, given, tasks)
    found = dict(re.findall(r"^ok: \[(\w+)\] =>\s+msg: (\w+)$", said, re.M))
    assert {name for name, postponed in found.items() if postponed == "true"} == {"without"}, said
    assert found.keys() == SETTINGS.keys()
