"""What a user writes is readable as after a login; what is the session's own, for nobody else."""

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of
from tests.waiting import until

USER = USERS[1]
NAMES = ("by-kernel.txt", "by-terminal.txt", "by-editor.txt")


PLACES = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108


@pytest.fixture(scope="module")
def left_before() -> frozenset[Path]:
    """What the user has left there at other times."""
    return frozenset(path for place in PLACES for path in reachable(place) if is_users(path))


@pytest.fixture(scope="module")
def user(portal: Instance, left_before: frozenset[Path]) -> Iterator[Visitor]:
    del left_before  # which is looked at first
    with session_of(portal, USER) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    home = Path(pwd.getpwnam(USER).pw_dir)
    yield home
    for name in NAMES:
        (home / name).unlink(missing_ok=True)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_from_kernel_terminal_and_editor_are_as_after_a_login(
    user: Visitor, home: Path
) -> None:
    by_kernel, by_terminal, by_editor = (home / name for name in NAMES)
    user.run(f"open({str(by_kernel)!r}, 'w').close()")
    user.type_in_terminal(f'echo > {by_terminal}; echo do""ne', "done")
    model = {"type": "file", "format": "text", "content": "mine"}
    user.session("PUT", f"/api/contents/{by_editor.name}", json=model).raise_for_status()
    assert {oct(mode(path)) for path in (by_kernel, by_terminal, by_editor)} == {"0o644"}


def test_nobody_else_reaches_what_the_session_keeps_beside_the_home(
    user: Visitor, left_before: frozenset[Path]
) -> None:
    """Sockets, connection files, databases: of server, kernel, terminal and TensorBoard."""
    kernel = user.open_kernel()
    ask = "import os; had = os.umask(0o77); os.umask(had)\n"
    ask += "print(os.environ['JUPYTER_RUNTIME_DIR'], had)"
    folder, umask = user.run_in(kernel, ask).rsplit(maxsplit=1)
    assert int(umask) == 0o022
    assert user.session("POST", "/api/terminals").status_code == 200
    page = user.session("GET", "/tensorboard/?anyway=1", follow_redirects=True)
    assert "tb-relative-root" in page.text
    kinds = {stat.S_IFMT(path.lstat().st_mode) for path in below(Path(folder))}
    assert {stat.S_IFREG, stat.S_IFSOCK} <= kinds
    places = {Path(folder).parent, *PLACES}
    found = {path for place in places for path in reachable(place) if is_users(path)}
    assert found <= left_before
    user.session("DELETE", f"/api/kernels/{kernel}")
    until(
        lambda: kernel not in user.session("GET", "/api/kernels").text,
        seconds=20,
        what="the kernel is gone",
    )


def below(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        yield from (Path(path, name) for name in (*folders, *files))


def reachable(folder: Path) -> Iterator[Path]:
    """Give what others than its owner can do something with, where they can come to."""
    for entry in folder.iterdir():
        try:
            told = entry.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(told.st_mode) or not told.st_mode & 0o077:
            continue
        yield entry
        if stat.S_ISDIR(told.st_mode) and told.st_mode & 0o011:
            yield from reachable(entry)


def is_users(path: Path) -> bool:
    try:
        return path.lstat().st_uid == pwd.getpwnam(USER).pw_uid
    except FileNotFoundError:
        return False
