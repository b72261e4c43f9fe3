"""What the code is made of: files and lines of each folder, and how deep classes inherit.

    "$(deploy/venv dev)"/bin/python -m benchmarks.structure [COMMIT]

Of the spawner and the portal, as a commit has them (default: ``HEAD``). A *rung* is one of our
classes in a chain; a name is *across rungs* where a class of the spawner's chain uses it and does
not define it (``self.name``), or asks it of ``super()``, and another class of the chain defines it:
as a method, an attribute of the class, or by assigning it to ``self``. The last line is one JSON
object.
"""

import argparse
import ast
import io
import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import PurePosixPath

from benchmarks.commit import ROOT, circumstances, commit

PARTS = ("spawner", "portal")
SPAWNER = "GpuSlurmSpawner"
_KINDS = (".py", ".ts")


@dataclass(frozen=True)
class Folder:
    """The files that are in a folder, and not in one below it."""

    files: int
    lines: int


@dataclass(frozen=True)
class OwnClass:
    """A class of ours: where it is, and what its file calls the classes that it is made from."""

    file: str
    node: ast.ClassDef

    @cached_property
    def defined(self) -> set[str]:
        """The names that it gives to its objects, and that its methods assign to them."""
        names = set()
        for part in self.node.body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(part.name)
            elif isinstance(part, ast.AnnAssign):
                names |= _names(part.target)
            elif isinstance(part, ast.Assign):
                names |= {name for target in part.targets for name in _names(target)}
        stores = (each for each in _of_objects(self.node) if isinstance(each.ctx, ast.Store))
        return names | {each.attr for each in stores}

    @cached_property
    def used(self) -> set[str]:
        """The names of its objects that it reads and does not define."""
        loads = (each for each in _of_objects(self.node) if isinstance(each.ctx, ast.Load))
        own = {each.attr for each in loads if not isinstance(each.value, ast.Call)}
        return own - self.defined

    @cached_property
    def used_of_super(self) -> set[str]:
        """The names that it asks of ``super()``."""
        return {each.attr for each in _of_objects(self.node) if isinstance(each.value, ast.Call)}


def _names(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _of_objects(node: ast.AST) -> Iterator[ast.Attribute]:
    """Give the attributes of ``self``, ``cls`` and ``super()``."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            owner = each.value.func if isinstance(each.value, ast.Call) else each.value
            expected = ("super",) if isinstance(each.value, ast.Call) else ("self", "cls")
            if isinstance(owner, ast.Name) and owner.id in expected:
                yield each


class Classes:
    """All classes of some Python files, each with those of ours that it inherits from."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._classes = {
            (file, node.name): OwnClass(file, node)
            for file, tree in trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }
        self._imported = {
            file: {
                alias.asname or alias.name: (node.module, alias.name)
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module
                for alias in node.names
            }
            for file, tree in trees.items()
        }
        self._files = {
            f".{'.'.join(PurePosixPath(file).with_suffix('').parts)}": file for file in trees
        }

    def chain(self, name: str) -> list[OwnClass]:
        """Return a class and what it inherits from, the longest way, down to our first one."""
        return max((self._chain(one) for one in self._named(name)), key=len)

    def deepest(self) -> list[OwnClass]:
        """Return the longest chain of all."""
        return max(map(self._chain, self._classes.values()), key=len)

    def _named(self, name: str) -> list[OwnClass]:
        return [one for (_, its_name), one in self._classes.items() if its_name == name]

    def _chain(self, one: OwnClass) -> list[OwnClass]:
        bases = [self._base(one.file, base) for base in one.node.bases]
        above = [self._chain(base) for base in bases if base is not None and base is not one]
        return [one, *max(above, key=len, default=[])]

    def _base(self, file: str, base: ast.expr) -> OwnClass | None:
        if isinstance(base, ast.Subscript):
            return self._base(file, base.value)
        if isinstance(base, ast.Name):
            module, name = self._imported[file].get(base.id, ("", base.id))
        elif isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
            module, name = ".".join(self._imported[file].get(base.value.id, ())), base.attr
        else:
            return None
        where = self._file(module) if module else file
        return self._classes.get((where, name))

    def _file(self, module: str) -> str:
        return next(
            (file for dotted, file in self._files.items() if dotted.endswith(f".{module}")), ""
        )


def from_above(chain: Sequence[OwnClass]) -> set[str]:
    """Return the names that a class of a chain uses, and one that it is built on defines."""
    return {
        name
        for rung, user in enumerate(chain)
        for other in chain[rung + 1 :]
        for name in (user.used | user.used_of_super) & other.defined
    }


def from_below(chain: Sequence[OwnClass]) -> set[str]:
    """Return the names that a class uses, and one that is built on it defines."""
    return {
        name
        for rung, user in enumerate(chain)
        for other in chain[:rung]
        for name in user.used & other.defined
    }


def folders(sources: Mapping[str, str]) -> dict[str, Folder]:
    """Count the files and the lines of each folder."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for file, text in sources.items():
        folder = str(PurePosixPath(file).parent)
        files[folder] += 1
        lines[folder] += len(text.splitlines())
    return {folder: Folder(files[folder], lines[folder]) for folder in sorted(files)}


def sources_of(commit: str) -> dict[str, str]:
    """Return the files of a commit that are counted, by their paths."""
    argv = ["/usr/bin/git", "-C", str(ROOT), "archive", commit, *PARTS]
    archive = subprocess.run(argv, check=True, capture_output=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            content = opened.extractfile(member) if member.name.endswith(_KINDS) else None
            if content is not None:
                found[member.name] = content.read().decode()
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each folder, the chains, and the JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.structure", description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD")
    asked = parser.parse_args(argv)
    sources = sources_of(asked.commit)
    classes = Classes(
        {file: ast.parse(text) for file, text in sources.items() if file[-3:] == ".py"}
    )
    counted = folders(sources)
    for folder, counts in counted.items():
        print(f"{counts.files:4d} files {counts.lines:6d} lines  {folder}")
    spawner, deepest = classes.chain(SPAWNER), classes.deepest()
    names = sorted(from_above(spawner) | from_below(spawner))
    chains = {
        "spawner": [one.node.name for one in spawner],
        "deepest": [one.node.name for one in deepest],
    }
    for what, chain in chains.items():
        print(f"{what}: {' -> '.join(chain)}")
    print(f"across rungs: {', '.join(names)}")
    said = {
        "benchmark": "structure",
        "folders": {folder: asdict(counts) for folder, counts in counted.items()},
        "chains": chains,
        "names_across_rungs": len(names),
        "names_from_below": len(from_below(spawner)),
        **circumstances(commit(asked.commit)),
    }
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
