"""The key to a registry: where it may come from."""

import base64
import json
import os
from pathlib import Path

import pytest

from dsportal.images.errors import ImageError
from dsportal.images.key import Key, authfile, from_file


def written(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    file = folder / "key"
    file.write_bytes(content)
    file.chmod(mode)
    return file


def test_a_key_is_read_from_a_private_file_and_not_shown(tmp_path: Path) -> None:
    key = from_file(written(tmp_path, b"nvapi-1\n"), "$oauthtoken")
    assert key.secret == "nvapi-1"
    assert "nvapi" not in repr(key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ImageError, match="can be read by others"):
        from_file(written(tmp_path, b"nvapi-1", mode), "me")


@pytest.mark.root
def test_the_file_of_another_user_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, b"nvapi-1")
    os.chown(file, 1, -1)
    with pytest.raises(ImageError, match="not yours"):
        from_file(file, "me")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"one\ntwo\n", b"\x1b[2J", "ключ".encode(), b"a" * 30_000]
)
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ImageError, match="has no key"):
        from_file(written(tmp_path, content), "me")


def test_a_pipe_or_a_missing_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ImageError, match="no ordinary file"):
        from_file(tmp_path / "pipe", "me")
    with pytest.raises(ImageError, match="No such file"):
        from_file(tmp_path / "missing", "me")


def test_skopeo_gets_it_in_a_file_without_a_name() -> None:
    with authfile("nvcr.io", Key("$oauthtoken", "nvapi-1")) as descriptor:
        path = Path(f"/proc/self/fd/{descriptor}")
        content = json.loads(path.read_text())
        assert "memfd" in os.readlink(path)
    pair = content["auths"]["nvcr.io"]["auth"]
    assert base64.b64decode(pair) == b"$oauthtoken:nvapi-1"


def test_without_a_key_nobodys_old_login_is_used() -> None:
    with authfile("nvcr.io", None) as descriptor:
        assert json.loads(Path(f"/proc/self/fd/{descriptor}").read_text()) == {"auths": {}}
