"""Which tests a change touches.

Of unit tests those that import, over any number of steps, what changed. Of other files `READERS`
says which unit tests look at them; a file that is not there may touch all.
"""

import ast
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import passed
from bootstrap import DISTRIBUTIONS

UNIT = Path("tests/unit")
NOTEBOOKS = Path("tests/notebooks")
"""Each notebook as a whole, in the environment of its framework."""
NOTEBOOK_JOBS = tuple(
    Path(f"tests/notebooks/distributed/test_training_jobs.py::{name}")
    for name in (
        "test_a_job_is_submitted_from_a_notebook_in_any_kernel",
        "test_a_program_of_ones_own_runs_on_both_nodes",
    )
)
"""Of these the quickest that run in a session and submit jobs there."""
DEPLOYMENT = Path("tests/deploy")
"""What a second deployment, a mount or a package does, with the test instance."""
HERE = (Path("tests/integration"), Path("tests/browser"), DEPLOYMENT, NOTEBOOKS)
"""Those that need a portal on this machine."""
MACHINES = (Path("tests/site"), Path("tests/machine"))
"""Those that make machines of their own: sites of three hosts, and Debian as it comes."""
_OF_MACHINES = Path("tests/debian")
PARTS = (*DISTRIBUTIONS, "notebook_templates")
READERS = {
    "deploy": (UNIT / "deploy",),
    "deploy/lab_extension.py": (UNIT / "lab",),
    "docs": (UNIT / "test_documentation.py",),
    "notebook_templates": (UNIT / "templates", UNIT / "data", UNIT / "sizing"),
    "portal/dsportal/lab": (UNIT / "lab",),
    "portal/dsportal/web": (UNIT / "portal",),
    "tests": (UNIT / "deploy/suite/test_collection.py",),
    "tests/conftest.py": (UNIT,),
    "tests/instance.py": (UNIT,),
}
"""Which tests look at a file or folder, as text or as programs."""
_ASKED_FOR = {"pyproject.toml", "package.json", "package-lock.json"}
# Folders whose modules are imported.
_IMPORTED = (*DISTRIBUTIONS, "deploy", "benchmarks", "tests")
_WORDS = ("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
_OF_EVERY_MODULE = UNIT / "portal/test_log_messages.py"
_OF_EVERY_CLASS = UNIT / "test_names.py"
_OF_EVERY_FOLDER = UNIT / "test_structure.py"
_OF_EVERY_PAGE = UNIT / "test_documentation.py"
_HOW_TOS = Path("docs/how-to")
_OF_EVERY_HOW_TO = Path("tests/integration/administration/test_how_to_commands.py")


def changed_files(root: Path, since: str = "HEAD") -> list[Path]:
    """Return what differs from a commit, and what git does not know yet, relative to ROOT.

    Raises:
        subprocess.CalledProcessError: the commit is not known here.

    """
    found = []
    new = ("ls-files", "--others", "--exclude-standard")
    for words in (("diff", "--no-renames", "--name-only", since, "--"), new):
        argv = ["/usr/bin/git", *words]
        done = subprocess.run(argv, cwd=root, check=True, stdout=subprocess.PIPE)
        found += [Path(line) for line in done.stdout.decode().splitlines()]
    return found


def affected(changed: Iterable[Path], root: Path) -> list[Path]:
    """Return the test files and folders to run for these changed files, all relative to ROOT."""
    found: set[Path] = set()
    modules: set[str] = set()
    for path in changed:
        if path.suffix == ".py" and path.parts[0] != "tests":
            found.add(_OF_EVERY_CLASS)
        if path.suffix == ".py" and path.parts[0] in DISTRIBUTIONS:
            found.add(_OF_EVERY_MODULE)
        if path.suffix == ".py" and path.parts[0] in (*PARTS, "tests"):
            found.add(_OF_EVERY_FOLDER)
        if path.parts[0] == "tests" and path.name.startswith("test_"):
            # Pages name tests.
            found.add(_OF_EVERY_PAGE)
        if path.is_relative_to(UNIT):
            found.add(path if path.name.startswith("test_") else path.parent)
            continue
        known = {
            test
            for folder, tests in READERS.items()
            if path.is_relative_to(folder)
            for test in tests
        }
        touched: set[str] = set()
        if path.suffix == ".py" and path.parts[0] in _IMPORTED:
            touched = {module_of(path)}
        elif path.suffix in (".md", ".png"):
            known.add(_OF_EVERY_PAGE)
            if path.is_relative_to(_HOW_TOS):
                known |= naming(path, (UNIT,), root)
        elif path.parts[0] in DISTRIBUTIONS and not known:
            touched = set(modules_beside(path, root))
        modules |= touched
        found.update(known if known or touched else [UNIT])
    if modules:
        files = dict(ours(root))
        imports = {
            module: {*imported(root / file), *sharing(file, root)} for module, file in files.items()
        }
        reached = importers(modules, imports)
        found.update(
            file
            for module, file in files.items()
            if module in reached and file.is_relative_to(UNIT) and file.name.startswith("test_")
        )
    if UNIT in found:
        return [UNIT]
    return sorted(path for path in found if (root / path).exists())


def naming(page: Path, folders: Iterable[Path], root: Path) -> set[Path]:
    """Return which of these tests name a how-to; of a shared module that does, its folder."""
    name = re.compile(rf'["/]{re.escape(page.name)}"')
    files = [file for folder in folders for file in (root / folder).rglob("*.py")]
    found = [file for file in files if name.search(file.read_text(encoding="utf-8"))]
    return {
        (file if file.name.startswith("test_") else file.parent).relative_to(root) for file in found
    }


class Scope(NamedTuple):
    """The tests to run beside the unit tests, which all run."""

    here: tuple[Path, ...]
    machines: tuple[Path, ...]

    def without(self, folder: Path) -> "Scope":
        """Leave out a folder of those that need a portal."""
        return self._replace(here=tuple(each for each in self.here if each != folder))

    def without_notebooks(self) -> "Scope":
        """Leave out those of notebooks, but for what they prove of the portal."""
        if NOTEBOOKS not in self.here:
            return self
        return self._replace(here=self.without(NOTEBOOKS).here + NOTEBOOK_JOBS)


EVERYTHING = Scope(HERE, MACHINES)


def scope(changed: Collection[Path], root: Path) -> Scope:
    """Return what changes touch.

    All, when they are in the deployment, in what is asked for, or in more than one part. A how-to
    touches the tests that follow it.

    What is in `DISTRIBUTIONS` is on the way to a notebook, and not in it.
    """
    parts: set[str] = set()
    tests: set[Path] = set()
    for path in changed:
        if path.name in _ASKED_FOR:
            return EVERYTHING
        if path.name.startswith("test_") and path.suffix == ".py" and path.parts[0] == "tests":
            tests.add(path)
        elif path.parts[0] in PARTS:
            parts.add(path.parts[0])
        elif path.is_relative_to(_HOW_TOS):
            tests |= {_OF_EVERY_HOW_TO, *naming(path, (*HERE, *MACHINES), root)}
            if naming(path, (_OF_MACHINES,), root):
                tests.update(MACHINES)
        elif path.parts[0] not in _WORDS and not path.is_relative_to(UNIT):
            return EVERYTHING
    if len(parts) > 1:
        return EVERYTHING

    def among(folders: Iterable[Path]) -> tuple[Path, ...]:
        found = {test for test in tests for folder in folders if test.is_relative_to(folder)}
        return tuple(sorted(test for test in found if (root / test).exists()))

    if not parts:
        return Scope(among(HERE), among(MACHINES))
    of_notebooks = any(path.is_relative_to(place) for path in changed for place in passed.NOTEBOOKS)
    has_notebooks = not parts <= set(DISTRIBUTIONS) or of_notebooks
    found = Scope(HERE, among(MACHINES))
    return found if has_notebooks else found.without_notebooks()


def importers(modules: set[str], imports: dict[str, set[str]]) -> set[str]:
    """Return these modules and all that import one of them, over any number of steps."""
    reached = set(modules)
    while more := {
        module
        for module, imported_there in imports.items()
        if module not in reached and not reached.isdisjoint(imported_there)
    }:
        reached |= more
    return reached


def ours(root: Path) -> Iterator[tuple[str, Path]]:
    """Give our modules' names and files."""
    for part in _IMPORTED:
        for file in (root / part).rglob("*.py"):
            path = file.relative_to(root)
            yield module_of(path), path


def modules_beside(path: Path, root: Path) -> Iterator[str]:
    """Give the modules that may read a file: those of its folder, or of the nearest above."""
    for folder in path.parents[:-2]:
        if beside := list((root / folder).glob("*.py")):
            yield from (module_of(file.relative_to(root)) for file in beside)
            return


def module_of(path: Path) -> str:
    """Return a module's name: ``portal/dsportal/hub/process.py`` is ``dsportal.hub.process``."""
    parts = path.with_suffix("").parts
    is_package = parts[0] in ("benchmarks", "tests")
    return ".".join(parts if is_package else parts[1:]).removesuffix(".__init__")


def sharing(file: Path, root: Path) -> Iterator[str]:
    """Give the conftest modules whose fixtures a test has: they come to it without an import."""
    if not file.is_relative_to(UNIT):
        return
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    asked = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for folder in file.parents[: -len(UNIT.parts)]:
        shared = folder / "conftest.py"
        if shared != file and (root / shared).exists() and asked & functions_of(root / shared):
            yield module_of(shared)


@cache
def functions_of(file: Path) -> frozenset[str]:
    """Return the names of a conftest module's functions, fixtures among them."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def imported(file: Path) -> Iterator[str]:
    """Give what a file imports: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
