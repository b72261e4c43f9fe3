"""What the tests start is installed by the deployment of their instance.

Else a machine that ran them once, or whose owner installed something, hides what a fresh one lacks.
"""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import bootstrap
import pytest
import yaml

from tests.debian import roots

TESTS = bootstrap.REPOSITORY / "tests"
ROLES = bootstrap.DEPLOY / "ansible/roles"
# The keys of packages_of that `deploy/up test` installs: its accounts are local ones, for one.
ROLES_OF_THE_INSTANCE = (
    *("directory", "munge", "slurm", "slurm_controller", "slurm_node", "environments"),
    *("environments_node", "environments_vscode", "environments_horovod", "environments_python2"),
    *("modules", "apptainer", "images", "portal", "measuring"),
)
# What boots a fresh machine is in it (tests/debian/roots.py), and not on ours.
OF_A_BOOTED_MACHINE = {"systemd"}
# Words that are in orders and answers which no test carries out, and what is only looked for.
ONLY_WORDS = {
    *("/bin/evil", "/bin/python", "/bin/zsh", "/usr/bin/apptainer", "/usr/bin/nvidia-smi"),
    *("/usr/sbin/getsebool", "/usr/sbin/restorecon"),
}

_PATH = re.compile(r"(?<![\w/.])/(?:usr/)?s?bin/[\w.+-]*\w")
_NAME = re.compile(r"[a-z][a-z0-9_+-]*(\.[a-z0-9]+)?")
_PROGRAMS = "/usr/sbin:/usr/bin:/sbin:/bin"
_STARTERS = {"run", "Popen", "check_output", "check_call", "call", "_call", "_run", "slurm"}
_ARGV = {"argv", "command", "program"}
# First words of lists that are handed to a program of ours, and names of a benchmark's parts.
_ARGUMENTS = {"localhost", "pytorch", "slow", "late", "well", "ill"}


def sources() -> list[Path]:
    """Return the tests' sources but those of a GPU, which run beside a driver, on no instance."""
    of_a_gpu = set((TESTS / "gpu").rglob("*.py"))
    assert of_a_gpu
    return sorted(set(TESTS.rglob("*.py")) - of_a_gpu - {Path(__file__)})


def text_of(node: ast.AST) -> str:
    value = node.value if isinstance(node, ast.Constant) else ""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def tails(tree: ast.AST) -> set[int]:
    """Return the parts of f-strings that follow a value: what begins there begins no path."""
    strings = [node.values for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    pairs = [pair for values in strings for pair in pairwise(values)]
    return {id(part) for before, part in pairs if isinstance(before, ast.FormattedValue)}


def first_word(node: ast.AST) -> str:
    """Give the program's name where this is a list of words to start one with."""
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        node = node.elts[0]
    word = text_of(node)
    return word if _NAME.fullmatch(word) and not word.endswith(".py") else ""


def named(node: ast.AST) -> str:
    """Give the program that is started by its name here, for PATH to find."""
    if isinstance(node, ast.Call) and node.args:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return first_word(node.args[0]) if name in _STARTERS else ""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return first_word(node.value) if node.targets[0].id in _ARGV else ""
    return ""


@cache
def started() -> dict[str, str]:
    """Return every program that the tests name, and a place where they do."""
    found: dict[str, str] = {}
    for source in sources():
        tree = ast.parse(source.read_text(encoding="utf-8"))
        follow = tails(tree)
        for node in ast.walk(tree):
            text = ("." if id(node) in follow else "") + text_of(node)
            names = {*_PATH.findall(text), named(node)} - ONLY_WORDS - _ARGUMENTS - {""}
            at = f"{source.relative_to(TESTS)}:{getattr(node, 'lineno', 0)}"
            found |= {name: at for name in names if name not in found}
    return found


def stanzas() -> Iterator[dict[str, str]]:
    fields = ("Package", "Depends", "Pre-Depends", "Provides", "Essential", "Priority")
    shown = "\x1f".join(f"${{{name}}}" for name in fields)
    argv = ["/usr/bin/dpkg-query", "--show", f"--showformat={shown}\n"]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout
    for line in listed.splitlines():
        yield dict(zip(fields, line.split("\x1f"), strict=True))


def alternatives(depends: str) -> list[list[str]]:
    """Read a Depends field: what must be there, each with what may stand in for it."""
    wanted = [part.split("|") for part in depends.split(",") if part.strip()]
    return [[name.split("(")[0].split(":")[0].strip() for name in names] for names in wanted]


def listed_packages() -> set[str]:
    """Return what the project's own files tell `deploy/up test` to install."""
    system = roots.system("debian-12")
    names = {name for role in ROLES_OF_THE_INSTANCE for name in system["packages_of"][role]}
    names |= set(
        yaml.safe_load((ROLES / "test_tools/defaults/main.yml").read_text())["test_tools_packages"]
    )
    names.add(f"postgresql-{system['packages_versions']['postgresql']}")
    return names | set(bootstrap.SYSTEM_PACKAGES) | OF_A_BOOTED_MACHINE


def installed_for_the_tests() -> set[str]:
    """Return these with all that they depend on, and what every Debian has."""
    known = {each["Package"]: each for each in stanzas()}
    providers: dict[str, set[str]] = {}
    for each in known.values():
        for (virtual,) in alternatives(each["Provides"]):
            providers.setdefault(virtual, set()).add(each["Package"])
    base = {n for n, e in known.items() if e["Essential"] == "yes" or e["Priority"] == "required"}
    found: set[str] = set()
    waiting = {*listed_packages(), *base}
    while waiting:
        name = waiting.pop()
        if name in found or name not in known:
            waiting |= providers.get(name, set()) - found
            continue
        found.add(name)
        of = known[name]
        for group in alternatives(f"{of['Depends']},{of['Pre-Depends']}"):
            waiting |= set(group)
    return found


def places(program: str) -> set[str]:
    """Return where a program may be for dpkg; nothing where it is not here."""
    path = shutil.which(program, path=_PROGRAMS)
    if path is None:
        return set()
    # Of before /bin and /usr/bin were one, and of what is chosen among several.
    return {path, path.removeprefix("/usr"), f"/usr{path}", str(Path(path).resolve())}


def owners(files: set[str]) -> dict[str, set[str]]:
    """Return the packages that files belong to."""
    argv = ["/usr/bin/dpkg", "--search", *sorted(files)]
    said = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60).stdout
    found: dict[str, set[str]] = {}
    for line in said.splitlines():
        names, _, file = line.rpartition(": ")
        found.setdefault(file, set()).update(re.findall(r"[a-z0-9][a-z0-9+.-]+", names))
    return found


@pytest.mark.usefixtures("portal")
def test_what_tests_start_is_installed_for_them() -> None:
    ours = installed_for_the_tests()
    programs = {program: places(program) for program in started()}
    owner = owners(set().union(*programs.values()))
    amiss = {
        f"{program}, started in {started()[program]}": of
        for program, files in programs.items()
        if not (of := set().union(*(owner.get(file, set()) for file in files))) & ours
    }
    assert amiss == {}, "name these packages in test_tools_packages"


def test_words_that_are_taken_for_programs_are_still_there() -> None:
    words = "".join(source.read_text(encoding="utf-8") for source in sources())
    assert [word for word in ONLY_WORDS | _ARGUMENTS if word not in words] == []
