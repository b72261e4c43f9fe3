"""`make check` proves what a change touches: the tests of what imports it, however far away."""

import subprocess
from pathlib import Path

import pytest
from affected import (
    HERE,
    MACHINES,
    NOTEBOOK_JOBS,
    NOTEBOOKS,
    READERS,
    UNIT,
    Scope,
    affected,
    changed_files,
    importers,
    scope,
)

from tests.instance import ROOT

WITHOUT_NOTEBOOKS = (*HERE[:-1], *NOTEBOOK_JOBS)
CODE = ("test_names", "test_structure")
"""What looks at all code that is shipped, and at its folders."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Two packages: `page` -> `jupyterhub_gpu_slurm.form` -> `.pure`; and a test of each.

    A benchmark that imports a module of the deployment, and a test of that.
    """
    files = {
        "spawner/jupyterhub_gpu_slurm/pure.py": "",
        "spawner/jupyterhub_gpu_slurm/form.py": "from jupyterhub_gpu_slurm import pure",
        "spawner/jupyterhub_gpu_slurm/apart.py": "import os",
        "portal/dsportal/page.py": "from jupyterhub_gpu_slurm.form import anything",
        "deploy/failures.py": "",
        "benchmarks/times.py": "from failures import anything",
        "tests/unit/test_times.py": "from benchmarks import times",
        "tests/helper.py": "from jupyterhub_gpu_slurm.apart import anything",
        "tests/unit/sub/conftest.py": "from tests.helper import anything\ndef cluster(): pass",
        "tests/unit/sub/test_fixture.py": "def test_it(cluster): pass",
        "tests/unit/sub/test_without.py": "def test_it(): pass",
        "tests/unit/test_pure.py": "import jupyterhub_gpu_slurm.pure",
        "tests/unit/test_page.py": "from dsportal.page import anything",
        "tests/unit/test_apart.py": "from jupyterhub_gpu_slurm import apart",
        "tests/unit/test_names.py": "",
        "tests/unit/test_documentation.py": "",
        "tests/unit/test_structure.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        ("spawner/jupyterhub_gpu_slurm/pure.py", ["test_page", "test_pure", *CODE]),
        ("portal/dsportal/page.py", ["test_page", *CODE]),
        ("spawner/jupyterhub_gpu_slurm/apart.py", ["sub/test_fixture", "test_apart", *CODE]),
        ("tests/unit/test_pure.py", ["test_documentation", "test_pure", "test_structure"]),
        ("deploy/failures.py", ["test_names", "test_times"]),
        ("benchmarks/times.py", ["test_names", "test_times"]),
        (
            "spawner/jupyterhub_gpu_slurm/form.html.j2",
            ["sub/test_fixture", "test_apart", "test_page", "test_pure"],
        ),
        ("notebook_templates/language/chat.py", [*CODE]),
    ],
)
def test_those_that_import_it_are_run(clone: Path, changed: str, run: list[str]) -> None:
    files = {file.relative_to(UNIT) for file in affected([Path(changed)], clone)}
    assert {str(file.with_suffix("")) for file in files} == set(run)


def test_what_tests_share_is_the_business_of_their_folder(clone: Path) -> None:
    assert affected([UNIT / "conftest.py"], clone) == [UNIT]


def test_what_nobody_is_named_after_is_everybodys_business(clone: Path) -> None:
    assert affected([Path("pyproject.toml")], clone) == [UNIT]


def test_a_removed_test_is_not_run_but_the_pages_that_may_name_it_are_read(clone: Path) -> None:
    run = [UNIT / "test_documentation.py", UNIT / "test_structure.py"]
    assert affected([UNIT / "test_gone.py"], clone) == run


def test_a_circle_of_imports_comes_to_an_end() -> None:
    assert importers({"a"}, {"a": {"b"}, "b": {"a"}, "c": set()}) == {"a", "b"}


def test_the_readers_of_every_folder_are_there() -> None:
    for folder, tests in READERS.items():
        assert (ROOT / folder).exists()
        assert all((ROOT / test).exists() for test in tests)


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ([], Scope((), ())),
        (["docs/reference/settings.md", "README.md"], Scope((), ())),
        (["tests/unit/deploy/suite/test_affected.py", "tests/unit/conftest.py"], Scope((), ())),
        (
            ["portal/dsportal/hub/patches/gate.py", "portal/dsportal/web/error.html", "docs/x.md"],
            Scope(WITHOUT_NOTEBOOKS, ()),
        ),
        (["notebook_templates/data/cuts.py"], Scope(HERE, ())),
        (["portal/dsportal/session/tracking.py"], Scope(HERE, ())),
        (["tests/browser/test_removed.py"], Scope((), ())),
        (
            ["portal/dsportal/hub/patches/gate.py", "spawner/jupyterhub_gpu_slurm/form.py"],
            Scope(HERE, MACHINES),
        ),
        (["deploy/up"], Scope(HERE, MACHINES)),
        (["pyproject.toml"], Scope(HERE, MACHINES)),
        (["portal/pyproject.toml"], Scope(HERE, MACHINES)),
        (["portal/dsportal/lab/package-lock.json"], Scope(HERE, MACHINES)),
        (["tests/visitor.py"], Scope(HERE, MACHINES)),
        (["tests/integration/conftest.py"], Scope(HERE, MACHINES)),
        (
            [
                "tests/site/test_faults.py",
                "tests/browser/options/test_form.py",
                "tests/unit/test_x.py",
            ],
            Scope(
                (Path("tests/browser/options/test_form.py"),), (Path("tests/site/test_faults.py"),)
            ),
        ),
        (
            ["tests/site/test_faults.py", "spawner/jupyterhub_gpu_slurm/form.py"],
            Scope(WITHOUT_NOTEBOOKS, (Path("tests/site/test_faults.py"),)),
        ),
    ],
)
def test_a_whole_run_leaves_out_what_no_change_touches(
    tmp_path: Path, changed: list[str], touched: Scope
) -> None:
    for name in ("tests/site/test_faults.py", "tests/browser/options/test_form.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert scope([Path(name) for name in changed], tmp_path) == touched


@pytest.mark.parametrize(
    ("page", "followers", "machines"),
    [
        ("measure-the-network", ["tests/integration/measuring/test_network.py"], ()),
        ("use-the-spawner-alone", ["tests/deploy/test_spawner_alone.py"], ()),
        # What machines are lent follows it, too.
        ("attach-to-your-slurm", ["tests/deploy/test_attach.py"], MACHINES),
    ],
)
def test_a_how_to_touches_the_tests_that_follow_it(
    page: str, followers: list[str], machines: tuple[Path, ...]
) -> None:
    of_every = "tests/integration/administration/test_how_to_commands.py"
    here = tuple(Path(name) for name in sorted([*followers, of_every]))
    assert scope([Path(f"docs/how-to/{page}.md")], ROOT) == Scope(here, tuple(sorted(machines)))


def test_a_unit_test_that_follows_a_how_to_is_touched_by_it() -> None:
    follows = Path("tests/unit/deploy/programs/test_release.py")
    assert follows in affected([Path("docs/how-to/install-without-network.md")], ROOT)


def test_of_notebooks_the_portals_part_is_run_each_time() -> None:
    assert HERE[-1] == NOTEBOOKS
    assert Scope(HERE, ()).without_notebooks() == Scope(WITHOUT_NOTEBOOKS, ())
    assert Scope((), ()).without_notebooks() == Scope((), ())


@pytest.mark.parametrize("test", NOTEBOOK_JOBS, ids=lambda test: test.name)
def test_the_portals_part_of_notebooks_is_there_and_not_long(test: Path) -> None:
    file, _, name = str(test).partition("::")
    before, found, _ = (ROOT / file).read_text(encoding="utf-8").partition(f"def {name}(")
    assert found
    assert not before.endswith("@pytest.mark.long\n")


def test_what_changed_since_a_commit_is_known_to_git(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=ada", "-c", "user.email=ada@test")
        subprocess.run(
            ["/usr/bin/git", "-C", tmp_path, *who, *words], check=True, capture_output=True
        )

    git("init")
    for name in ("kept", "renamed", "removed"):
        (tmp_path / name).write_text(name)
    git("add", "-A")
    git("commit", "-m", "first")
    git("mv", "renamed", "moved")
    (tmp_path / "removed").unlink()
    git("commit", "-a", "-m", "second")
    (tmp_path / "new").touch()
    since = {str(path) for path in changed_files(tmp_path, "HEAD~1")}
    assert since == {"renamed", "moved", "removed", "new"}
    assert changed_files(tmp_path) == [Path("new")]
    with pytest.raises(subprocess.CalledProcessError):
        changed_files(tmp_path, "0123456789abcdef")
