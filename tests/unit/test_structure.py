"""The figures of the code's structure: folders, chains of classes, and names across their rungs."""

import ast
import json
import subprocess
from collections import Counter
from pathlib import PurePosixPath

import pytest

from benchmarks import structure
from tests.checkout import ROOT

PARTS = ("benchmarks", "deploy", "notebook_templates", "portal", "spawner", "tests")
MOST_FILES = 24
"""Of a folder: one that is larger than about this holds several nouns."""
SOURCES = {
    "spawner/gpu/traits.py": """
from batchspawner import BatchSpawnerBase
class Traits(BatchSpawnerBase):
    minutes = 5
    folder: str
    def wait(self): return self._mark
""",
    "spawner/gpu/kept.py": """
from gpu.traits import Traits as Below
class Kept(Below):
    def __init__(self):
        self._mark, self.seen = self._name(), 0
    def wait(self): super().wait()
    def _name(self): return self.folder
    def upstreams(self): return self.user
""",
    "spawner/gpu/spawner.py": """
from gpu import kept
class GpuSlurmSpawner(kept.Kept):
    def wait(self):
        self._mark = self.minutes
        return self.seen, self._own()
    def _own(self): return self.upstreams
""",
    "portal/lab/src/index.ts": "// one\n// two\n",
    # Of another class with the same name.
    "portal/traits.py": "class Traits: ...\nclass Plain(Traits): ...\nclass Text(str): ...\n",
}


def classes() -> structure.Classes:
    trees = {file: ast.parse(text) for file, text in SOURCES.items() if file.endswith(".py")}
    return structure.Classes(trees)


def test_a_chain_leads_through_imports_down_to_our_first_class() -> None:
    found = classes()
    chain = found.chain("GpuSlurmSpawner")
    assert [one.node.name for one in chain] == ["GpuSlurmSpawner", "Kept", "Traits"]
    assert [one.file for one in chain][-1] == "spawner/gpu/traits.py"
    assert found.deepest() == chain
    assert [one.node.name for one in found.chain("Plain")] == ["Plain", "Traits"]
    assert [one.node.name for one in found.chain("Text")] == ["Text"]


def test_a_name_across_rungs_is_used_in_one_class_and_defined_in_another() -> None:
    chain = classes().chain("GpuSlurmSpawner")
    # What is defined where it is used is not, unless it is asked of ``super()``.
    names = {"_mark", "folder", "minutes", "seen", "upstreams", "wait"}
    assert structure.from_above(chain) | structure.from_below(chain) == names
    assert structure.from_below(chain) == {"_mark"}


def test_each_folder_has_its_files_and_lines() -> None:
    assert structure.folders(SOURCES)["portal/lab/src"] == structure.Folder(1, 2)
    assert structure.folders(SOURCES)["spawner/gpu"].files == 3


def test_a_commit_is_counted_and_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert structure.main(["HEAD"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["chains"]["spawner"][0] == "GpuSlurmSpawner"
    assert len(told["chains"]["spawner"]) <= 3
    assert told["folders"]["spawner/jupyterhub_gpu_slurm/session"]["files"] > 10
    assert max(counts["files"] for counts in told["folders"].values()) <= MOST_FILES


def test_no_folder_has_more_python_files_than_one_can_look_through() -> None:
    """Also of what git does not know yet, and without what it is not to know."""
    argv = ["/usr/bin/git", "ls-files", "--cached", "--others", "--exclude-standard", "--"]
    argv += [f"{part}/*.py" for part in PARTS]
    listed = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = {file for file in listed.splitlines() if (ROOT / file).exists()}
    folders = Counter(str(PurePosixPath(file).parent) for file in files)
    assert len(folders) > 80
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}
