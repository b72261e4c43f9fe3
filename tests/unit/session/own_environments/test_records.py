import json
import os
import pwd
from pathlib import Path

import pytest

from dsportal.session.own_environments import words
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    EnvironmentRecord,
    OwnEnvironmentError,
    checked_modules,
    checked_name,
    checked_packages,
    folder_from,
)
from dsportal.session.own_environments.sizes import size_of, size_words


@pytest.fixture
def folder(tmp_path: Path) -> EnvironmentFolder:
    (tmp_path / "own").mkdir()
    return EnvironmentFolder(tmp_path / "own")


def finished(folder: EnvironmentFolder, name: str, base: str = "") -> None:
    folder.begin(name)
    python = folder.place(name) / "bin/python"
    python.parent.mkdir()
    python.touch()
    folder.write(EnvironmentRecord(name, ("pytorch/2.13",), base, ("einops",), "3.11.2"))


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", ".hidden", "-x", "a b", "a\n", "a\0", "ä", "x" * 51, "$(id)"],
)
def test_a_name_leads_nowhere_else(name: str, folder: EnvironmentFolder) -> None:
    with pytest.raises(OwnEnvironmentError):
        checked_name(name)
    with pytest.raises(OwnEnvironmentError):
        folder.place(name)


@pytest.mark.parametrize("name", ["-f", "a b", "a;b", "../x", "a/../b", "[exec id]", "a\nb", ""])
def test_a_module_is_a_modules_name(name: str) -> None:
    with pytest.raises(OwnEnvironmentError):
        checked_modules([name])
    assert checked_modules(["shared", "pytorch/2.13"]) == ("shared", "pytorch/2.13")


@pytest.mark.parametrize("text", ["", " ", "-r x", "--index-url=http://x", " -e .", "a\nb", "a\0"])
def test_a_package_is_no_option(text: str) -> None:
    with pytest.raises(OwnEnvironmentError):
        checked_packages([text])
    assert checked_packages(["einops>=0.8", "/a/b.whl"]) == ("einops>=0.8", "/a/b.whl")


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("~/environments", "/home/ann/environments"),
        ("/mnt/isilon/{user}/env", "/mnt/isilon/ann/env"),
        ("/scratch/envs", "/scratch/envs"),
    ],
)
def test_the_folder_is_the_users(setting: str, path: str) -> None:
    assert str(folder_from(setting, "/home/ann", "ann")) == path


@pytest.mark.parametrize("setting", ["relative", "/a/../b", "/a b", "/a{x}", "~bob/x", ""])
def test_a_folder_that_a_modulefile_cannot_name_is_refused(setting: str) -> None:
    with pytest.raises(OwnEnvironmentError):
        folder_from(setting, "/home/ann", "ann")


def test_environments_are_found_with_what_they_say(folder: EnvironmentFolder) -> None:
    finished(folder, "nlp")
    folder.begin("half")
    (folder.path / "a-venv-of-hers").mkdir()
    (folder.path / "a-venv-of-hers/pyvenv.cfg").touch()
    (folder.path / "link").symlink_to(folder.path / "nlp")
    found = folder.all()
    assert [(one.name, one.record is not None, bool(one.trouble)) for one in found] == [
        ("half", False, True),
        ("nlp", True, False),
    ]
    record = found[1].record
    assert record is not None
    assert record.title == "nlp (pytorch/2.13)"


@pytest.mark.root
def test_anothers_folder_has_no_environments_of_mine(folder: EnvironmentFolder) -> None:
    finished(folder, "nlp")
    assert folder.trouble == ""
    os.chown(folder.path, 4321, 4321)
    assert folder.trouble != ""
    assert folder.all() == []


@pytest.mark.root
def test_what_somebody_else_has_put_into_a_folder_for_all_is_not_mine(
    folder: EnvironmentFolder,
) -> None:
    finished(folder, "nlp")
    finished(folder, "theirs")
    os.chown(folder.place("theirs"), 4321, 4321)
    assert [one.name for one in folder.all()] == ["nlp"]


@pytest.mark.root
@pytest.mark.parametrize("anothers", ["ann", "ann/environments", "ann/environments/.modulefiles"])
def test_modulefiles_that_somebody_else_could_write_are_not_used(
    tmp_path: Path, anothers: str
) -> None:
    folder = EnvironmentFolder(tmp_path / "ann/environments")
    assert folder.has_own_modulefiles()
    assert not folder.path.exists()
    (tmp_path / anothers).mkdir(parents=True)
    os.chown(tmp_path / anothers, 4321, 4321)
    assert not folder.has_own_modulefiles()


@pytest.mark.root
def test_in_a_folder_for_all_nobody_else_makes_the_users_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(tmp_path, 0, 0)
    account = pwd.struct_passwd(("ann", "x", 4321, 4321, "", "/home/ann", "/bin/sh"))
    monkeypatch.setattr("os.geteuid", lambda: 4321)
    monkeypatch.setattr("pwd.getpwuid", lambda _: account)
    folder = EnvironmentFolder(tmp_path / "ann/environments")
    assert folder.has_own_modulefiles()
    assert folder.modulefiles.is_dir()
    # What is for others is not the user's to make.
    assert not EnvironmentFolder(tmp_path / "bob/environments").has_own_modulefiles()
    assert not (tmp_path / "bob").exists()


@pytest.mark.root
def test_nothing_is_made_below_anothers_folder(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    os.chown(tmp_path / "ann", 4321, 4321)
    folder = EnvironmentFolder(tmp_path / "ann/environments/here")
    with pytest.raises(OwnEnvironmentError), folder.locked("nlp"):
        pass
    assert list((tmp_path / "ann").iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize(
    ("below", "is_usable"),
    [("ann/environments", True), ("env-ann", True), ("users/ann/environments", False)],
)
def test_in_a_folder_for_all_only_that_of_the_user_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str, is_usable: bool
) -> None:
    os.chown(tmp_path, 0, 0)
    account = pwd.struct_passwd(("ann", "x", 4321, 4321, "", "/home/ann", "/bin/sh"))
    monkeypatch.setattr("os.geteuid", lambda: 4321)
    monkeypatch.setattr("pwd.getpwuid", lambda _: account)
    assert (EnvironmentFolder(tmp_path / below).trouble == "") is is_usable


def test_what_is_no_folder_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o755)
    with pytest.raises(OwnEnvironmentError, match="file"):
        EnvironmentFolder(tmp_path / "file").make()


def test_one_whose_base_is_gone_says_so(folder: EnvironmentFolder, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    finished(folder, "nlp", str(base))
    assert folder.all()[0].trouble == ""
    base.rmdir()
    assert folder.all()[0].trouble != ""


@pytest.mark.parametrize(
    "change",
    [{"on": ["x; exec id"]}, {"on": "pytorch"}, {"packages": [1]}, {"base": None}],
)
def test_a_record_that_is_none_is_not_believed(
    folder: EnvironmentFolder, change: dict[str, object]
) -> None:
    finished(folder, "nlp")
    file = folder.place("nlp") / "portal-environment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert folder.all()[0].record is None


def test_two_do_not_work_on_one(folder: EnvironmentFolder) -> None:
    with folder.locked("nlp"), pytest.raises(OwnEnvironmentError), folder.locked("nlp"):
        pass
    with folder.locked("nlp"), folder.locked("other"):
        pass


# The same as of the page: portal/dsportal/lab/test/bytes.test.ts.
@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (1024 * 1023, "1.0 MiB"),
        (25_000_000, "24 MiB"),
        (24 * 2**20 + 2**19, "25 MiB"),
        (5 * 2**38, "1.3 TiB"),
        (5000 * 2**50, "5000 PiB"),
    ],
)
def test_the_log_gives_a_size_as_the_list_does(size: int, said: str) -> None:
    assert size_words(size) == said


def test_the_size_is_what_lies_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/file").write_bytes(b"x" * 100_000)
    (tmp_path / "same").hardlink_to(tmp_path / "below/file")
    (tmp_path / "link").symlink_to("/usr")
    assert 100_000 <= size_of(tmp_path) < 120_000


def rewritten(folder: EnvironmentFolder, change: dict[str, object], *left_out: str) -> None:
    file = folder.place("nlp") / "portal-environment.json"
    content = {key: one for key, one in json.loads(file.read_text()).items() if key not in left_out}
    file.write_text(json.dumps(content | change))


def test_a_record_of_before_there_were_versions_is_read(folder: EnvironmentFolder) -> None:
    finished(folder, "nlp")
    before = folder.all()
    rewritten(folder, {}, "version")
    assert folder.all() == before
    assert before[0].trouble == ""


def test_what_a_newer_release_made_is_not_called_unfinished(folder: EnvironmentFolder) -> None:
    finished(folder, "nlp")
    rewritten(folder, {"version": 2, "on": {"another": "shape"}})
    assert [one.trouble for one in folder.all()] == [words.NEWER]
