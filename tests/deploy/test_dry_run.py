"""What a deployment would change is said of a site that has nothing yet, and nothing is changed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy import many_nodes
from tests.instance import ROOT

NODES = [f"node{number:04d}" for number in range(1, 21)]


@pytest.mark.timeout(600)
def test_a_new_head_is_asked_though_no_node_can_be_reached(tmp_path: Path) -> None:
    with many_nodes.site(tmp_path / "site", len(NODES)) as site:
        done = subprocess.run(
            [str(ROOT / "deploy/up"), str(site), "--limit", "head", "--check"],
            env=os.environ | {"ANSIBLE_DIFF_ALWAYS": "1"},
            check=False,
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        recap = re.search(r"head +: ok=\d+ +changed=(\d+) +unreachable=0", done.stdout)
        assert recap, done.stdout[-2000:]
        assert int(recap[1]) > 20
        assert re.findall(r"^\+NodeName=(\S+) .*NodeAddr=", done.stdout, re.MULTILINE) == NODES
    assert not many_nodes.ETC.exists()
    assert not Path(f"/etc/slurm-{many_nodes.NAME}").exists()
