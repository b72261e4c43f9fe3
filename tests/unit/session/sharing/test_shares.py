import json
import os
from pathlib import Path

import pytest

from dsportal.session.sharing.access import Audience, SharingError
from dsportal.session.sharing.shares import MAX_BYTES, Shares, notebook_at

LINK = Audience("link")


@pytest.fixture
def shares(tmp_path: Path) -> Shares:
    moments = iter(range(100, 200))
    return Shares(tmp_path / "shared", now=lambda: next(moments))


def test_a_share_is_a_copy_in_a_folder_that_nobody_can_guess(
    shares: Shares, tmp_path: Path
) -> None:
    made = shares.add("work/a.ipynb", b"{}", LINK)
    assert (made.path, made.name, made.audience, made.at) == ("work/a.ipynb", "a.ipynb", LINK, 100)
    assert (tmp_path / "shared" / made.id / "a.ipynb").read_bytes() == b"{}"
    assert len(made.id) == 32
    # Others may pass through, and not list.
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o711
    # What it was made of is nobody else's business.
    assert (tmp_path / "shared" / made.id / ".share.json").stat().st_mode & 0o777 == 0o600


def test_shares_are_listed_and_removed(shares: Shares, tmp_path: Path) -> None:
    first, second = (shares.add(name, b"{}", LINK) for name in ("a.ipynb", "b.ipynb"))
    assert shares.all() == [second, first]
    shares.remove(first.id)
    assert shares.all() == [second]
    with pytest.raises(SharingError, match="any more"):
        shares.remove(first.id)
    # What else is in the folder is left out.
    (tmp_path / "shared" / ("0" * 32)).mkdir()
    (tmp_path / "shared" / "notes").mkdir()
    assert shares.all() == [second]


def test_records_of_other_releases_are_read_as_far_as_they_can_be(
    shares: Shares, tmp_path: Path
) -> None:
    old, new = (shares.add(name, b"{}", LINK) for name in ("a.ipynb", "b.ipynb"))

    def change(share_id: str, **values: object) -> None:
        file = tmp_path / "shared" / share_id / ".share.json"
        told = {**json.loads(file.read_text()), **values}
        file.write_text(json.dumps({key: one for key, one in told.items() if one is not None}))

    change(old.id, version=None)
    change(new.id, version=2)
    assert shares.all() == [old]
    assert (tmp_path / "shared" / new.id / "b.ipynb").exists()
    change(old.id, version=1)
    assert shares.all() == [old]


def test_nothing_is_left_of_a_share_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = Shares(tmp_path / "shared")

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(SharingError, match="cannot be used: Operation not supported"):
        shares.add("a.ipynb", b"{}", LINK)
    assert shares.all() == []


def test_a_storage_without_acls_says_what_to_do(
    shares: Shares, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("dsportal.session.sharing.access._uid_of", lambda name: 1234)

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(SharingError, match="Share with a group"):
        shares.add("a.ipynb", b"{}", Audience("people", ("ann",)))
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SharingError, match=r"nas/ann/shared, cannot be used: No such file"):
        Shares(tmp_path / "nas/ann/shared").add("a.ipynb", b"{}", LINK)


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "shared").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SharingError, match="cannot be used"):
        Shares(tmp_path / "shared").add("a.ipynb", b"{}", LINK)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["a.txt", ".hidden.ipynb", "a"])
def test_only_notebooks_are_shared(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(SharingError, match="not a notebook"):
        notebook_at(str(tmp_path / name), name)


def test_a_notebook_has_a_largest_size(tmp_path: Path) -> None:
    place = tmp_path / "a.ipynb"
    place.write_bytes(b" " * MAX_BYTES)
    assert len(notebook_at(str(place), "a.ipynb")) == MAX_BYTES
    place.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(SharingError, match="larger than 32 MiB"):
        notebook_at(str(place), "a.ipynb")
    with pytest.raises(SharingError, match="No such file"):
        notebook_at(str(tmp_path / "b.ipynb"), "b.ipynb")


@pytest.mark.root
def test_a_colleagues_link_is_not_shared(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("mine")
    link = tmp_path / "notes.ipynb"
    link.symlink_to(tmp_path / "key")
    assert notebook_at(str(link), "notes.ipynb") == b"mine"
    os.lchown(link, 65534, 65534)
    with pytest.raises(SharingError):
        notebook_at(str(link), "notes.ipynb")
