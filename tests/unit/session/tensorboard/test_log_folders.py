"""Which folders TensorBoard may show, and what the user hears of the others."""

from pathlib import Path

import pytest

from dsportal.session.tensorboard import words
from dsportal.session.tensorboard.log_folders import FolderError, folder_at, has_events

EVENTS = "events.out.tfevents.1795275869.node001.26099.0"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for folder in ("logs/run", "empty/.hidden", "empty/inner"):
        (home / folder).mkdir(parents=True)
    (home / "logs/run" / EVENTS).touch()
    (home / "empty/.hidden" / EVENTS).touch()
    (home / "notes.txt").touch()
    (tmp_path / "nas/curves").mkdir(parents=True)
    (home / "isilon").symlink_to(tmp_path / "nas")
    (home / "gone").symlink_to(tmp_path / "unmounted")
    (home / "loop").symlink_to(home / "loop")
    return home


def test_a_folder_is_found_by_its_own_name_and_through_a_link(home: Path) -> None:
    assert folder_at(home, "logs/run") == home / "logs/run"
    assert folder_at(home, "") == home
    assert folder_at(home, "isilon/curves") == home.parent / "nas/curves"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("logs/away", words.no_folder("~/logs/away")),
        ("gone", words.dead_link("~/gone", "{nas}/unmounted")),
        ("gone/deep", words.dead_link("~/gone", "{nas}/unmounted")),
        ("loop", words.cannot_be_opened("~/loop", "a link in it leads to itself")),
        ("notes.txt", words.is_a_file("~/notes.txt")),
        ("notes.txt/deep", words.cannot_be_opened("~/notes.txt/deep", "Not a directory")),
        ("../nas", words.outside("~/../nas")),
        ("/etc", words.outside("~//etc")),
        ("a\0b", words.outside("~/a\0b")),
        ("x" * 300, words.cannot_be_opened(f"~/{'x' * 300}", "File name too long")),
    ],
)
def test_what_is_not_a_folder_is_said_in_words(home: Path, path: str, told: str) -> None:
    with pytest.raises(FolderError) as caught:
        folder_at(home, path)
    assert str(caught.value) == told.format(nas=home.parent)


def test_a_folder_that_may_not_be_read_is_named_with_where_its_link_leads(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root, who may run the tests, may read everything.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(FolderError, match=words.unreadable("~/logs")):
        folder_at(home, "logs")
    with pytest.raises(FolderError, match=words.unreadable("~/isilon", f"{home.parent}/nas")):
        folder_at(home, "isilon")


def test_events_count_in_the_folder_and_below_it_but_not_in_hidden_ones(home: Path) -> None:
    assert has_events(home / "logs/run") is True
    assert has_events(home / "logs") is True
    assert has_events(home / "empty") is False


def test_a_large_folder_is_not_looked_through(home: Path) -> None:
    for number in range(30):
        (home / "empty" / f"{number:02}.txt").touch()
    assert has_events(home / "empty", most_entries=20) is None
    # What is near is found before the rest is read.
    (home / "empty/inner" / EVENTS).touch()
    assert has_events(home / "empty", most_entries=40) is True


def test_links_that_lead_back_end(home: Path) -> None:
    (home / "empty/inner/up").symlink_to(home / "empty")
    assert has_events(home / "empty") is None


def test_what_cannot_be_read_is_not_taken_for_empty(home: Path) -> None:
    assert has_events(home / "notes.txt") is None
    assert has_events(home / "away") is None
