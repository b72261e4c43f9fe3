"""The program for users' own computers, up to the connection: test_ssh.py has the rest."""

from pathlib import Path

import pytest

from dsportal.web import portal_ssh

SESSION = "https://portal.org/user/a%40b/"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(portal_ssh, "KEYS", tmp_path)
    monkeypatch.setattr(portal_ssh, "FOLDER", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("session", "address"),
    [
        ("https://portal.org/user/a%40b/", "wss://portal.org/user/a%40b/portal/ssh"),
        ("http://head:8000/user/a", "ws://head:8000/user/a/portal/ssh"),
    ],
)
def test_a_sessions_address_leads_to_its_way_in(session: str, address: str) -> None:
    assert portal_ssh.address_of(session) == address


@pytest.mark.parametrize("session", ["portal.org/user/a", "ftp://portal.org/", "https:///user/a"])
def test_what_is_no_address_is_refused(session: str) -> None:
    with pytest.raises(SystemExit, match="is not an address"):
        portal_ssh.address_of(session)


@pytest.mark.parametrize(
    ("session", "name"),
    [
        (SESSION, "portal-token"),
        (SESSION.rstrip("/"), "portal-token"),
        (f"{SESSION}training/", "portal-training-token"),
        (f"{SESSION}training", "portal-training-token"),
    ],
)
def test_each_session_has_a_token_of_its_own(folder: Path, session: str, name: str) -> None:
    file = folder / name
    file.write_text("abc\n")
    file.chmod(0o600)
    assert portal_ssh.read_token(session) == "abc"


def test_a_token_that_others_can_read_is_not_used(folder: Path) -> None:
    file = folder / "portal-token"
    file.write_text("abc\n")
    file.chmod(0o640)
    with pytest.raises(SystemExit, match="chmod 600"):
        portal_ssh.read_token(SESSION)
    file.chmod(0o600)
    assert portal_ssh.read_token(SESSION) == "abc"


def test_without_a_token_or_a_key_it_says_what_is_missing(folder: Path) -> None:
    with pytest.raises(SystemExit, match="no token"):
        portal_ssh.read_token(SESSION)
    with pytest.raises(SystemExit, match="ssh-keygen -t ed25519"):
        portal_ssh.public_keys()


def test_public_keys_go_without_their_comments(folder: Path) -> None:
    (folder / "id_rsa.pub").write_text("ssh-rsa AAAAB3 me@laptop\n")
    (folder / "id_ed25519.pub").write_text("ssh-ed25519 AAAAC3\n")
    (folder / "id_rsa-cert.pub").write_text("ssh-rsa-cert-v01@openssh.com AAAA me\n")
    assert portal_ssh.public_keys() == ["ssh-ed25519 AAAAC3", "ssh-rsa AAAAB3"]
