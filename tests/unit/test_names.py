"""One public name means one thing in all that is shipped."""

import ast
import subprocess
from collections import defaultdict

from tests.checkout import ROOT

SHIPPED = ("portal", "spawner", "notebook_templates", "benchmarks", "deploy")


def test_no_two_public_classes_have_one_name() -> None:
    argv = ["/usr/bin/git", "ls-files", "--", *(f"{part}/*.py" for part in SHIPPED)]
    listed = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in listed.splitlines():
        if (ROOT / file).exists():
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(file)
    assert len(places) > 400
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
