"""What a release is made of, before anything is built."""

import json
import re
import runpy
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import bootstrap
import offline
import pytest

from tests.pages import how_to, lines

ROOT = Path(__file__).resolve().parents[4]
LAB = ROOT / "portal/dsportal/lab"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy/release"))


def repository(folder: Path, portal: str, spawner: str) -> Path:
    for name, version in (("portal", portal), ("spawner", spawner)):
        (folder / name).mkdir()
        (folder / name / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    return folder


def test_what_is_not_committed_is_in_no_release(script: dict[str, Any], tmp_path: Path) -> None:
    lock = tmp_path / "deploy/locks/hub.txt"
    lock.parent.mkdir(parents=True)
    lock.write_text("jupyterhub==6.1\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for argv in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "a release"]):
        subprocess.run(["/usr/bin/git", *argv], cwd=tmp_path, check=True)
    script["refuse_uncommitted"](tmp_path)
    lock.write_text("jupyterhub==6.2\n")
    (tmp_path / "new.yml").write_text("")
    with pytest.raises(bootstrap.DeploymentError) as raised:
        script["refuse_uncommitted"](tmp_path)
    assert "M deploy/locks/hub.txt" in str(raised.value)
    assert "?? new.yml" in str(raised.value)


def test_all_parts_of_a_release_have_its_version(script: dict[str, Any]) -> None:
    version = script["version"](ROOT)
    assert f'"jupyterhub-gpu-slurm=={version}"' in (ROOT / "portal/pyproject.toml").read_text()
    assert json.loads((LAB / "package.json").read_text())["version"] == version
    assert json.loads((LAB / "package-lock.json").read_text())["version"] == version


def test_the_changelog_has_the_version_and_begins_with_its_upgrade_notes(
    script: dict[str, Any],
) -> None:
    sections = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert sections[0].splitlines()[0] == "[Unreleased]"
    (section,) = (each for each in sections if each.startswith(f"{script['version'](ROOT)} ("))
    assert re.findall(r"^### (.*)$", section, re.MULTILINE)[0] == "Upgrade notes"


def test_the_how_to_unpacks_a_release_to_where_packages_are_looked_for(
    script: dict[str, Any], tmp_path: Path
) -> None:
    name = f"data-scientist-portal-{script['version'](ROOT)}"
    with tarfile.open(tmp_path / f"{name}-offline.tar", "w") as opened:
        for part in (name, "packages"):
            (tmp_path / "packed" / part).mkdir(parents=True)
            opened.add(tmp_path / "packed" / part, part)
    cache = str(bootstrap.PACKAGES.parent)
    block = how_to("install-without-network.md", 0, {cache: str(tmp_path / "cache")})
    typed = ["/bin/sh", "-ec", f"{block}\npwd"]
    said = subprocess.run(typed, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.split() == [str(tmp_path / name)]
    assert (tmp_path / "cache/packages").is_dir()


def test_the_how_to_packs_the_packages_of_a_lock_that_there_is() -> None:
    _, (program, option, lock) = lines(how_to("install-without-network.md", 1))
    assert bootstrap.lock_file(lock).exists()
    said = subprocess.run([ROOT / program, "--help"], check=True, capture_output=True, text=True)
    assert f"{option} LOCK" in said.stdout


def test_versions_that_differ_stop_a_release(script: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(bootstrap.DeploymentError, match=r"'portal': '0\.3\.0', 'spawner': '0\.2"):
        script["version"](repository(tmp_path, "0.3.0", "0.2.0"))


def test_a_file_that_is_built_differently_or_not_at_all_is_refused(
    script: dict[str, Any], tmp_path: Path
) -> None:
    for folder, content in (("one", b"1"), ("same", b"1"), ("other", b"2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.whl").write_bytes(content)
    (tmp_path / "none").mkdir()
    files = [tmp_path / "one/a.whl"]
    script["refuse_different"](files, tmp_path / "same")
    for folder in ("other", "none"):
        with pytest.raises(bootstrap.DeploymentError, match=r"a\.whl is not the same"):
            script["refuse_different"](files, tmp_path / folder)


def test_every_lock_that_is_packed_is_there() -> None:
    for name in (*offline.PYTHON_LOCKS, *offline.JAVASCRIPT, *offline.INSTALLED):
        assert bootstrap.lock_file(name).exists()


def test_registries_are_asked_only_where_no_packages_were_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "PACKAGES", tmp_path / "packages")
    assert bootstrap.brought_along() == []
    assert "--offline" not in bootstrap.npm_cache()
    for name in ("python", "npm"):
        (tmp_path / "packages" / name).mkdir(parents=True)
    assert bootstrap.sources_of("hub") == [
        "--no-index",
        "--find-links",
        tmp_path / "packages/python",
    ]
    assert bootstrap.npm_cache() == ["--offline", "--cache", tmp_path / "packages/npm"]
