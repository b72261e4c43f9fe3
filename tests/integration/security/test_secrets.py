"""Secrets are in files of mode 0600, and nowhere else: looked for by their values."""

import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.instance import PASSWORD, ROOT, SETTINGS, USERS, Instance
from tests.visitor import Visitor

LOGS = Path("/var/log", SETTINGS.parent.name)
CHUNK = 2**22


@pytest.fixture(scope="module")
def files(portal: Instance) -> dict[str, Path]:
    """Where the secrets of the instance are."""
    return {
        "cookie secret": Path(portal.settings["hub"]["state_dir"], "jupyterhub_cookie_secret"),
        "proxy's token": SETTINGS.parent / "proxy.env",
        "Prometheus' token": Path(portal.settings["monitoring"]["token_file"]),
    }


@pytest.fixture(scope="module")
def secrets(files: dict[str, Path], owner: Visitor, session_token: str) -> dict[str, bytes]:
    """Their values, and those of tokens that users and sessions have."""
    values = {name: file.read_text().strip().rpartition("=")[2] for name, file in files.items()}
    values["a session's token"] = session_token
    values["a user's token"] = owner.token()
    return {name: value.encode() for name, value in values.items()}


def test_secrets_are_in_files_of_mode_0600(files: dict[str, Path]) -> None:
    for name, file in files.items():
        assert file.stat().st_mode & 0o777 == 0o600, name
        assert len(file.read_text().strip()) >= 32, name


def test_each_instance_makes_its_own(secrets: dict[str, bytes]) -> None:
    assert len(set(secrets.values())) == len(secrets)


def state(portal: Instance) -> Path:
    """Return the folder with what the instance keeps; homes are in it."""
    return Path(portal.settings["hub"]["state_dir"]).parent


def all_files(folder: Path) -> Iterator[Path]:
    for path, _, names in os.walk(folder):
        yield from (Path(path, name) for name in names if Path(path, name).is_file())


def found_in(file: Path, values: dict[str, bytes]) -> list[str]:
    pattern = re.compile(b"|".join(re.escape(value) for value in values.values()))
    try:
        with file.open("rb") as content:
            while chunk := content.read(CHUNK):
                if hit := pattern.search(chunk):
                    return [name for name, value in values.items() if value == hit[0]]
                if len(chunk) == CHUNK:
                    content.seek(-128, os.SEEK_CUR)
    except OSError:
        return []  # gone meanwhile, or a socket
    return []


def test_no_log_has_a_secret(portal: Instance, secrets: dict[str, bytes]) -> None:
    of_the_instance = list(all_files(LOGS))
    assert any(file.name == "hub.log" for file in of_the_instance)
    of_sessions = [*state(portal).glob("home/*/.local/state/data-scientist-portal/*.log")]
    assert of_sessions
    for file in (*of_the_instance, *of_sessions):
        assert found_in(file, secrets) == [], file


def test_no_file_that_others_can_read_has_a_secret(
    portal: Instance, secrets: dict[str, bytes]
) -> None:
    folders = (SETTINGS.parent, state(portal), Path("/run", SETTINGS.parent.name))
    for file in (file for folder in folders for file in all_files(folder)):
        if hits := found_in(file, secrets):
            # Nobody but its owner, or the folder is closed to all others.
            closed = any(p.stat().st_mode & 0o077 == 0 for p in (file, *file.parents[:-1]))
            assert closed, (file, hits)


def test_no_secret_is_in_git(secrets: dict[str, bytes]) -> None:
    argv = ["/usr/bin/git", "ls-files", "-z"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            assert found_in(ROOT / name, secrets) == [], name


def test_no_command_line_has_a_secret(portal: Instance, secrets: dict[str, bytes]) -> None:
    hub_user = Path(portal.settings["hub"]["state_dir"]).owner()
    ours = {pwd.getpwnam(name).pw_uid for name in (hub_user, *USERS)}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        assert found_in(path, secrets) == [], path
        try:
            words = path.read_bytes().split(b"\0")
            is_ours = path.stat().st_uid in ours  # others' programs may be told this word
        except OSError:
            continue  # gone meanwhile
        # An account can have the name that the tests' password is.
        given = [word for before, word in pairwise(words) if before != b"-u"]
        assert not (is_ours and PASSWORD.encode() in given), (path, words[0])


def test_only_its_owner_can_read_an_environment_with_a_secret(secrets: dict[str, bytes]) -> None:
    holders = [path for path in Path("/proc").glob("[0-9]*/environ") if found_in(path, secrets)]
    assert holders
    for path in holders:
        # Of mode 0400; the kernel also asks who traces whom (proc(5)).
        argv = ["/usr/sbin/runuser", "-u", USERS[0], "--", "/bin/cat", str(path)]
        read = subprocess.run(argv, capture_output=True, check=False)
        assert read.stdout == b"", path


def test_slurm_shows_no_secret_to_others(
    portal: Instance, stranger: Visitor, secrets: dict[str, bytes]
) -> None:
    (job_id,) = portal.jobs(user=stranger.name)[:1]
    shown = portal.slurm("scontrol", "show", "job", "-dd", job_id, user=USERS[0])
    shown += portal.slurm("squeue", "-a", "-o", "%all", user=USERS[0])
    script = portal.slurm("scontrol", "write", "batch_script", job_id, "-", user=USERS[0])
    assert "#!" not in script
    # Nor may its owner's script, which Slurm's accounting may store.
    own = portal.slurm("scontrol", "write", "batch_script", job_id, "-", user=stranger.name)
    assert "#!" in own
    shown += script + own
    for name, value in secrets.items():
        assert value.decode() not in shown, name
