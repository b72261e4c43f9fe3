from pathlib import Path

import pytest

from dsportal.session.ssh.server_config import KeysError, authorized_keys, server_config

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBPb"


def lines_of(environment: dict[str, str]) -> list[str]:
    return server_config(Path("/run/a b"), Path("/home/u/key"), environment).splitlines()


def test_only_the_keys_of_the_connection_log_in() -> None:
    told = lines_of({})
    assert 'AuthorizedKeysFile "/run/a b/authorized_keys"' in told
    assert 'HostKey "/home/u/key"' in told
    assert {"PasswordAuthentication no", "KbdInteractiveAuthentication no", "UsePAM no"} < {*told}


def test_the_environment_is_one_line_of_quoted_words() -> None:
    """Of several lines with SetEnv, sshd reads the first one only."""
    given = {"B": 'x "y" \\ # z', "A": "1", "HOME": "/home/u", "TERM": "dumb"}
    found = [line for line in lines_of(given) if line.startswith("SetEnv")]
    assert found == ['SetEnv "A=1" "B=x \\"y\\" \\\\ # z"']


def test_a_variable_adds_no_line() -> None:
    given = {"A": "1", "X": "1\nPasswordAuthentication yes", "Y": "\x00"}
    assert len(lines_of(given)) == len(lines_of({"A": "1"}))


def test_keys_are_a_line_each() -> None:
    sk = "sk-ssh-ed25519@openssh.com AAAAGnNr"
    assert authorized_keys([KEY, sk]) == f"{KEY}\n{sk}\n"
    assert authorized_keys(["ecdsa-sha2-nistp256 AAAA="]) == "ecdsa-sha2-nistp256 AAAA=\n"


@pytest.mark.parametrize(
    "keys",
    [
        None,
        [],
        KEY,
        [KEY] * 21,
        [f'command="id" {KEY}'],
        [f"{KEY}\n{KEY}"],
        [f"{KEY} a comment"],
        ["ssh-ed25519"],
        [1],
        {KEY: KEY},
    ],
)
def test_anything_else_is_refused(keys: object) -> None:
    with pytest.raises(KeysError):
        authorized_keys(keys)
