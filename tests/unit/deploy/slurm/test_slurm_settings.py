"""The files of Slurm that the role writes, for nodes that have what they say and for others."""

from typing import Any

import bootstrap
import jinja2
import pytest
import yaml

ROLE = bootstrap.DEPLOY / "ansible/roles/slurm"


def rendered(template: str, **given: Any) -> str:
    """Render a template with the role's own defaults, as far as they are plain values."""
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.ChainableUndefined)  # noqa: S701
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    text = (ROLE / "templates" / template).read_text()
    return environment.from_string(text).render(**{**defaults, **given})


@pytest.mark.parametrize(("constrain", "word"), [(True, "yes"), (False, "no")])
def test_jobs_are_kept_to_their_cores_where_nodes_have_them(constrain: bool, word: str) -> None:
    lines = rendered("cgroup.conf.j2", slurm_constrain_cores=constrain).splitlines()
    wanted = {f"ConstrainCores={word}", "ConstrainDevices=yes", "ConstrainRAMSpace=yes"}
    assert wanted <= set(lines)


def test_real_nodes_are_kept_to_their_cores_unless_an_inventory_says_otherwise() -> None:
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    assert defaults["slurm_constrain_cores"] == "{{ not slurm_believe_hardware }}"
    assert defaults["slurm_believe_hardware"] == "{{ slurm_has_virtual }}"
