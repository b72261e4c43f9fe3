"""Names in what is shipped: a public one means one thing, and each is a term of the field.

What a class or a module is, its docstring says in terms of the field too.
"""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

import wheels

from tests.checkout import ROOT

SHIPPED = ("portal", "spawner", "notebook_templates", "benchmarks", "deploy")
RIDDLES = (
    *("kept", "turns", "offer", "entering", "strict", "absence", "keeper", "equipment", "orders"),
    *("mended", "written_down", "farewell", "places", "shelf", "team", "share", "lap"),
)
"""Words that a name here once had for a thing that the field has another word for."""
ALLOWED = {
    # Notebooks are shared there, and it is the word on the page.
    ("portal/dsportal/session/sharing/", "share"),
    ("portal/dsportal/lab/src/share/", "share"),
    # JupyterHub's own name of a trait.
    ("portal/dsportal/authentication/admission.py", "strict"),
}
"""Where a word may stand nevertheless: the beginning of a path, and the word."""

RIDDLE_OPENINGS = {
    *("what", "who", "whom", "whose", "how", "whether", "which", "why", "where", "when"),
    *("one", "those", "everything", "something", "somebody", "with", "by", "for"),
}
"""First words of a docstring that goes around the thing, such as "What all handlers share"."""
FEWEST_WORDS = 4


def modules(*parts: str) -> Iterator[tuple[str, ast.Module]]:
    """Give the Python files of these folders, as paths in the repository, and what is in them."""
    argv = ["/usr/bin/git", "ls-files", "--", *(f"{part}/*.py" for part in parts)]
    listed = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for file in listed.splitlines():
        if (ROOT / file).exists():
            yield file, ast.parse((ROOT / file).read_text(encoding="utf-8"))


def test_no_two_public_classes_have_one_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in modules(*SHIPPED):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(file)
    assert len(places) > 400
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


EXPORT = re.compile(
    r"^export (?:declare |abstract |async )*"
    r"(?:class|const|enum|function\*?|interface|let|type) (\w+)",
    re.MULTILINE,
)


def exports() -> Iterator[tuple[str, set[str]]]:
    """Give the sources of our extension of JupyterLab, and the names that each exports."""
    sources = ROOT / wheels.LAB / "src"
    for file in sorted(sources.rglob("*.ts")):
        yield str(file.relative_to(ROOT)), set(EXPORT.findall(file.read_text(encoding="utf-8")))


def test_no_two_modules_of_the_extension_export_one_name() -> None:
    modules_of: defaultdict[str, list[str]] = defaultdict(list)
    for file, names in exports():
        for name in names:
            modules_of[name].append(file)
    assert len(modules_of) > 250
    assert {name: files for name, files in modules_of.items() if len(files) > 1} == {}


def test_each_kind_of_export_is_seen() -> None:
    text = """\
export interface IOne {
export abstract class Two {
export type Three = string;
export const FOUR = 4;
export async function five(): Promise<void> {
export function* six() {
export default [
  export const inside = 1;
// export const SEVEN = 7;
"""
    assert EXPORT.findall(text) == ["IOne", "Two", "Three", "FOUR", "five", "six"]


def riddles(name: str) -> set[str]:
    """Return which of the words are in a name of a module, a class or a function."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    spelt = f"_{'_'.join(words).lower()}_"
    return {riddle for riddle in RIDDLES if f"_{riddle}_" in spelt}


def test_a_riddle_is_found_in_a_name_of_any_kind() -> None:
    assert riddles("_content_kept") == {"kept"}
    assert riddles("KeptFolder") == {"kept"}
    assert riddles("HTTPShelf") == {"shelf"}
    assert riddles("is_written_down_now") == {"written_down"}
    assert riddles("shared_answer") == riddles("written") == riddles("OrderedTeams") == set()


def test_names_of_modules_classes_and_functions_are_terms_of_the_field() -> None:
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found, named, seen = set(), [*exports()], 0
    for file, tree in modules("portal", "spawner"):
        names = {*PurePosixPath(file).with_suffix("").parts}
        names |= {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
        named.append((file, names))
    for file, names in named:
        seen += len(names)
        found |= {(file, name, riddle) for name in names for riddle in riddles(name)}
    assert seen > 3000
    allowed = {
        (start, word): {
            (file, name)
            for file, name, riddle in found
            if file.startswith(start) and riddle == word
        }
        for start, word in ALLOWED
    }
    assert {(file, name) for file, name, _ in found} == set().union(*allowed.values())
    assert [entry for entry, names in allowed.items() if not names] == []


def is_riddle(docstring: str) -> bool:
    """Say whether the first line of a class's or a module's docstring leaves open what it is."""
    words = re.findall(r"\S+", docstring.splitlines()[0])
    return len(words) < FEWEST_WORDS or words[0].strip(",:").lower() in RIDDLE_OPENINGS


def test_a_docstring_that_leaves_open_what_the_class_is_is_found() -> None:
    assert is_riddle("Who asks, and what shows it.")
    assert is_riddle("How a part is.")
    assert is_riddle("The folder.")
    assert is_riddle("One GPU of a node, and which job holds it.")
    assert not is_riddle("State of a check.")
    assert not is_riddle("A check whose answer is late.\n\nWhat it says.")


def test_docstrings_of_classes_and_modules_begin_with_what_the_thing_is() -> None:
    found, seen = set(), 0
    for file, tree in modules("portal", "spawner"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.Module) and (said := ast.get_docstring(node)):
                seen += 1
                if is_riddle(said):
                    found.add((file, said.splitlines()[0]))
    assert seen > 700
    assert found == set()
