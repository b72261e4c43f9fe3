"""Sources of our JupyterLab extension: which folder imports which, and where its sentences stand.

Between the folders imports run in one direction, as in Python.

A type is gone when the sources are built: ``import type`` of what another folder reads makes no
circle. Where one leads upwards, it is named here all the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import wheels

from tests.checkout import ROOT

SOURCES = ROOT / wheels.LAB / "src"
BELOW: dict[str, set[str]] = {
    "common": set(),
    "environments": {"common"},
    "jobs": {"common", "notify"},
    "kernels": set(),
    "launcher": {"common", "look"},
    "look": {"common"},
    "notify": {"common"},
    "session": {"common"},
    "share": {"common"},
    "storage": {"common", "jobs", "look"},
    "tables": {"common"},
    "usage": {"common", "session"},
}
"""From which others a folder may import; ``index.ts`` may from all."""
TYPES_FROM_ABOVE = {
    # What the session's server answers, as `common/server.ts` and `jobs/server.ts` read it.
    ("common", "launcher"),
    ("common", "usage"),
    ("jobs", "storage"),
}
STATEMENT = re.compile(
    r"""^(?:import|export)\s+(?P<type>type\s)?(?:[\w*{][^'"`;]*?\bfrom\s+)?['"](?P<one>[^'"]+)"""
    r"""|\b(?:import|require)\(\s*['"](?P<late>[^'"]+)""",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Import:
    """What a folder asks of another."""

    importer: str
    imported: str
    is_type: bool


def imports(file: Path, text: str) -> Iterator[Import]:
    """Give the imports of other folders of the extension in a file, whose text is given."""
    for found in STATEMENT.finditer(text):
        name = found["one"] or found["late"]
        if name.startswith("."):
            target = (file.parent / name).resolve().relative_to(SOURCES).parts[0]
            folder = file.relative_to(SOURCES).parts[0]
            if target != folder:
                yield Import(folder, target, bool(found["type"]))


def found() -> set[Import]:
    files = [file for file in SOURCES.rglob("*.ts") if file.parent != SOURCES]
    assert len(files) > 50
    return {each for file in files for each in imports(file, file.read_text(encoding="utf-8"))}


def test_each_way_to_import_is_seen() -> None:
    text = """\
import { a } from '../common/a';
import type { B } from '../jobs/b';
import c, {
  d,
  type E
} from '../look/c';
import * as f from "../notify/f";
import '../session/g';
export { h } from '../share/h';
export const i = async () => await import('../storage/i');
import { j } from './j';
import { k } from '@jupyterlab/usage';
// from '../usage/l'
"""
    assert set(imports(SOURCES / "launcher/file.ts", text)) == {
        Import("launcher", "common", is_type=False),
        Import("launcher", "jobs", is_type=True),
        *(
            Import("launcher", folder, is_type=False)
            for folder in ("look", "notify", "session", "share", "storage")
        ),
    }


def test_each_folder_imports_from_those_below_it_only() -> None:
    upwards = {each for each in found() if each.imported not in BELOW[each.importer]}
    assert {each for each in upwards if not each.is_type} == set()
    assert {(each.importer, each.imported) for each in upwards} <= TYPES_FROM_ABOVE


def test_the_table_has_every_folder_and_no_circle() -> None:
    assert {folder.name for folder in SOURCES.iterdir() if folder.is_dir()} == set(BELOW)
    assert set(TopologicalSorter(BELOW).static_order()) == set(BELOW)


def test_what_users_read_stands_with_the_words_of_its_folder() -> None:
    """``common/time.ts`` has the units, of which sentences are made."""
    texts = re.compile(r"\.(?:__|_n)\(")
    files = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.ts")
        if texts.search(file.read_text(encoding="utf-8"))
    }
    assert {file for file in files if not file.endswith("/words.ts")} == {"common/time.ts"}
    assert len(files) > 5
