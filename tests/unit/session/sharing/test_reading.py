import os
import pwd
from pathlib import Path

import pytest

from dsportal.session.sharing import words
from dsportal.session.sharing.access import SharingError
from dsportal.session.sharing.reading import place_of, read
from dsportal.session.sharing.shares import MAX_BYTES

SELF = pwd.getpwuid(os.getuid()).pw_name
SETTING = "/nas/users/{user}/shared"
ID = "0" * 32


def test_a_share_lies_where_its_owner_and_number_say() -> None:
    assert place_of(SETTING, "ann", ID, "a b.ipynb") == f"/nas/users/ann/shared/{ID}/a b.ipynb"


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("..", "a.ipynb"),
        ("a/b", "a.ipynb"),
        ("", "a.ipynb"),
        ("ann", "../a.ipynb"),
        ("ann", ".share.json"),
        ("ann", ".a.ipynb"),
        ("ann", "random.py"),
        ("ann", "a\0.ipynb"),
        ("{user}", "a.ipynb"),
    ],
)
def test_no_name_leads_elsewhere(owner: str, name: str) -> None:
    with pytest.raises(SharingError) as refused:
        place_of(SETTING, owner, ID, name)
    assert str(refused.value) == words.NOT_FOR_YOU.format(owner=owner)


def test_a_share_is_read_as_its_owner_left_it(tmp_path: Path) -> None:
    place = tmp_path / "a.ipynb"
    place.write_bytes(b"{}")
    os.utime(place, (1000, 1000))
    shared = read(str(place), SELF)
    assert (shared.name, shared.content, shared.at) == ("a.ipynb", b"{}", 1000)


def test_what_is_not_the_owners_file_is_not_shown(tmp_path: Path) -> None:
    kept = tmp_path / "mine.ipynb"
    kept.write_bytes(b"{}")
    (tmp_path / "link.ipynb").symlink_to(kept)
    (tmp_path / "folder.ipynb").mkdir()
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "large.ipynb").touch()
    os.truncate(tmp_path / "large.ipynb", MAX_BYTES + 1)
    for name in ("link", "folder", "pipe", "large", "none"):
        with pytest.raises(SharingError) as refused:
            read(str(tmp_path / f"{name}.ipynb"), SELF)
        assert str(refused.value) == words.NOT_FOR_YOU.format(owner=SELF)
    # Somebody else's file below the owner's name, by a link on the way: the reader's own, say.
    for owner in ("daemon", "no-such-user"):
        with pytest.raises(SharingError) as refused:
            read(str(kept), owner)
        assert str(refused.value) == words.NOT_FOR_YOU.format(owner=owner)
