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


CAPS = "/dev/nvidia-caps/nvidia-cap"
NODE: dict[str, object] = {
    "name": "gpu01",
    "gpus": [
        {"type": "a100", "count": 2, "files": "/dev/nvidia0,/dev/nvidia2"},
        {"type": "a100_1g.5gb", "count": 1, "files": f"/dev/nvidia1,{CAPS}21,{CAPS}22"},
        {"type": "a100_1g.5gb", "count": 1, "files": f"/dev/nvidia1,{CAPS}30,{CAPS}31"},
        {"type": "a100_3g.20gb", "count": 1, "files": f"/dev/nvidia1,{CAPS}12,{CAPS}13"},
    ],
}


def test_slurm_is_told_which_devices_belong_to_a_slice() -> None:
    lines = [line for line in rendered("gres.conf.j2", slurm_nodes=[NODE]).splitlines() if line]
    start = "NodeName=gpu01 Name=gpu Type="
    assert lines[2:] == [
        f"{start}a100 File=/dev/nvidia0,/dev/nvidia2",
        f"{start}a100_1g.5gb MultipleFiles=/dev/nvidia1,{CAPS}21,{CAPS}22",
        f"{start}a100_1g.5gb MultipleFiles=/dev/nvidia1,{CAPS}30,{CAPS}31",
        f"{start}a100_3g.20gb MultipleFiles=/dev/nvidia1,{CAPS}12,{CAPS}13",
    ]


def test_slurm_counts_each_kind_of_slice() -> None:
    text = rendered("slurm.conf.j2", slurm_nodes=[NODE], slurm_node_names=["gpu01"])
    assert " Gres=gpu:a100:2,gpu:a100_1g.5gb:2,gpu:a100_3g.20gb:1 " in text
