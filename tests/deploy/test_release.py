"""A release is made from a clone, and holds what the page promises; the program tries it itself."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.pages import HOW_TOS

pytestmark = pytest.mark.long


@pytest.mark.timeout(1500)
def test_a_release_has_its_files_and_says_what_it_is_made_of(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["/usr/bin/git", "clone", "-q", str(ROOT), str(clone)], check=True)
    subprocess.run([str(clone / "deploy/release")], check=True, timeout=1400)
    (folder,) = (clone / "dist").iterdir()
    made = {file.name: file for file in folder.iterdir()}
    page = (HOW_TOS / "install-without-network.md").read_text()
    materials = re.findall(r"`([a-z]+\.cdx\.json)`", page)
    assert len(materials) == 4
    kinds = {re.sub(r".*-offline", "*-offline", name) for name in made if "offline" in name}
    assert kinds == {"*-offline.tar"}
    assert len([name for name in made if name.endswith(".whl")]) == 2
    assert len([name for name in made if name.endswith(".tar.gz")]) == 2
    for name in materials:
        said = json.loads(made[name].read_text())
        assert said["bomFormat"] == "CycloneDX"
        assert len(said["components"]) > 5
    hub = json.loads(made["hub.cdx.json"].read_text())
    assert hub["metadata"]["component"]["name"] == "data-scientist-portal"
    assert {"jupyterhub", "jupyterhub-gpu-slurm"} <= {each["name"] for each in hub["components"]}
