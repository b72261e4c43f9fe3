"""The documentation's links lead somewhere, and its commands exist."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("notebook_*/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
MAKE = re.compile(r"`make ([a-z -]+)`|^make ([a-z-]+)", re.MULTILINE)


def identify(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            continue
        assert (page.parent / link.partition("#")[0]).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_every_make_command_is_a_target(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for quoted, typed in MAKE.findall(page.read_text(encoding="utf-8")):
        for target in (quoted or typed).split():
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.fixture(scope="module")
def files() -> dict[Path, str]:
    """The text of each file of tests."""
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_every_test_that_a_page_names_exists(page: Path, files: dict[Path, str]) -> None:
    text = page.read_text(encoding="utf-8")
    tests = "\n".join(files.values())
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in tests, name
    # The end of a file's path, and tests of it.
    for path, names in re.findall(r"`([\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", text):
        of_file = "\n".join(files[file] for file in files if str(file).endswith(f"/{path}"))
        for name in re.findall(r"test_\w+", names):
            assert f"def {name}(" in of_file, (path, name)
    for path in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / path).exists(), path


def named(nav: object) -> Iterator[str]:
    """Give the pages that a table of contents leads to."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from named(part)


def test_the_site_leads_to_each_page_once() -> None:
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    pages = (ROOT / "docs").rglob("*.md")
    assert sorted(named(project["nav"])) == sorted(str(p.relative_to(ROOT / "docs")) for p in pages)


def test_the_index_names_each_page() -> None:
    index = (ROOT / "docs/README.md").read_text("utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - set(re.findall(r"\]\(([^)#]+)", index)) == {"README.md"}


def test_the_site_has_no_broken_link_and_asks_nothing_of_other_sites(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    argv = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    built = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(PAGES) / 2
    asked = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>")
    assert {found for page in pages for found in asked.findall(page.read_text())} == set()


ARCHITECTURE = ROOT / "docs/explanation/architecture.md"
PACKAGES = {"In `spawner/": "spawner/jupyterhub_gpu_slurm", "In `portal/": "portal/dsportal"}


def modules_of_the_tables() -> Iterator[Path]:
    """Give the modules that the first columns of the architecture's tables name."""
    package, folder = "", PurePosixPath()
    for line in ARCHITECTURE.read_text(encoding="utf-8").splitlines():
        package = next((to for start, to in PACKAGES.items() if line.startswith(start)), package)
        if package and line.startswith("| `"):
            folder = PurePosixPath()
            for name in re.findall(r"`([\w/]+)`", line.split("|")[1]):
                # What follows in a row is in the folder of the one before.
                folder = PurePosixPath(name).parent if "/" in name else folder
                yield ROOT / package / folder / PurePosixPath(name).name
        elif package and line.startswith("## "):
            return


def test_every_module_that_the_architecture_names_exists() -> None:
    named = list(modules_of_the_tables())
    assert len(named) > 80
    missing = [path for path in named if not (path.is_dir() or path.with_suffix(".py").exists())]
    assert [str(path.relative_to(ROOT)) for path in missing] == []


def test_the_architecture_names_every_module_or_its_folder() -> None:
    named = set(modules_of_the_tables())
    modules = [
        path
        for package in PACKAGES.values()
        for path in (ROOT / package).rglob("*.py")
        if not path.name.startswith("__")
    ]
    assert len(modules) > 200
    unnamed = [path for path in modules if not {path.with_suffix(""), *path.parents} & named]
    assert [str(path.relative_to(ROOT)) for path in unnamed] == []


WALK = re.compile(r"^.*: (\d+) files, (\d+) returns\.\n\n((?:\|.*\n)+)", re.MULTILINE)
STEP = re.compile(r"^\| `([^`]+)`( ↩)? \| `([^`]+)` \| .+ \|$")


@dataclass(frozen=True)
class Step:
    """One row of a walk: a file, whether the walk comes back to it, and what to look for in it."""

    file: str
    is_return: bool
    symbol: str


def walks() -> Iterator[tuple[int, int, list[Step]]]:
    """Give what the architecture says of each walk: its files, its returns, and its steps."""
    for files, returns, table in WALK.findall(ARCHITECTURE.read_text(encoding="utf-8")):
        rows = [STEP.match(row) for row in table.splitlines()[2:]]
        steps = [Step(row[1], bool(row[2]), row[3]) for row in rows if row]
        assert len(steps) == len(rows), "a row of a walk cannot be read"
        yield int(files), int(returns), steps


def test_each_step_of_a_walk_is_still_in_its_file() -> None:
    steps = [step for *_, walk in walks() for step in walk]
    assert len(steps) > 20
    for step in steps:
        found = [ROOT / package / step.file for package in PACKAGES.values()]
        (file,) = (path for path in found if path.is_file())
        assert step.symbol in file.read_text(encoding="utf-8"), step


def test_a_walk_has_the_files_and_the_returns_that_it_is_said_to_have() -> None:
    for files, returns, walk in walks():
        assert len({step.file for step in walk}) == files
        assert [step.is_return for step in walk].count(True) == returns
        for index, step in enumerate(walk):
            assert step.is_return == (step.file in {before.file for before in walk[:index]}), step


def commands_of_benchmarks(text: str) -> Iterator[tuple[str, str]]:
    """Give each benchmark that a text says how to run, after its ``PYTHONPATH``."""
    exported = ""
    for line in text.splitlines():
        words = line.split()
        path = next((word for word in words if word.startswith("PYTHONPATH=")), exported)
        if words[:1] == ["export"]:
            exported = path
        elif words[:1] in ([], ["```"]):
            exported = ""
        for module in re.findall(r" -m (benchmarks\.[a-z_.]+)(?![\w.])", line):
            yield path.removeprefix("PYTHONPATH="), module


def test_each_benchmark_can_be_run_as_its_texts_say() -> None:
    texts = [ROOT / "docs/reference/benchmarks.md", *(ROOT / "benchmarks").rglob("*.py")]
    modules: dict[str, set[str]] = {}
    for text in texts:
        for path, module in commands_of_benchmarks(text.read_text(encoding="utf-8")):
            modules.setdefault(path, set()).add(module)
    assert sum(len(names) for names in modules.values()) > 30
    for path, names in modules.items():
        imports = "\n".join(f"import {name}" for name in sorted(names))
        run = subprocess.run(
            [sys.executable, "-c", imports],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.returncode == 0, (path, run.stderr)
