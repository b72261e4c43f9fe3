"""Fixtures for all tests that need the running portal."""

import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from math import inf
from pathlib import Path

import hypothesis
import pytest
from failures import REPORTS, seconds_of_files

from tests import instance
from tests.desk import Desk
from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

# How long an example takes is the machine's affair.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


_SAID_CHARACTERS = 4000


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test the same whichever instance it runs on."""
    if not isinstance(val, str) or instance.PREFIX not in val:
        return None
    return val.replace(instance.PREFIX, "test").encode("unicode_escape").decode()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Show what a program said that a test awaited to succeed: the error itself does not."""
    try:
        return (yield)
    except subprocess.CalledProcessError as error:
        for name, said in (("stdout", error.stdout), ("stderr", error.stderr)):
            text = said.decode(errors="replace") if isinstance(said, bytes) else said
            if text:
                error.add_note(f"{name}: {text[-_SAID_CHARACTERS:]}")
        raise


COMPUTING = {"notebooks", "browser"}
"""Folders whose tests keep the processors busy; others mostly wait."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix files that compute with such that wait: side by side they should use all there is.

    What took longest in the last run comes first among its kind, so that all that runs side by side
    ends together; before that, as long as it is not known, tests of minutes and notebooks.
    """
    seconds = seconds_of_files(REPORTS / "here.xml")
    long = {item.path for item in items if item.get_closest_marker("long")}

    def place(item: pytest.Item) -> tuple[float, bool, bool]:
        file = str(item.path.relative_to(instance.ROOT))
        return -seconds.get(file, inf), item.path not in long, "notebooks" not in item.path.parts

    items.sort(key=place)
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [file for file in files if COMPUTING.isdisjoint(file.parts)]
    computing = [file for file in files if file not in waiting]
    places = {
        file: number / len(kind)
        for kind in (computing, waiting)
        for number, file in enumerate(kind)
    }
    items.sort(key=lambda item: places[item.path])


@pytest.fixture(scope="session")
def portal() -> Iterator[Instance]:
    """The test instance: a real hub, proxy, directory and Slurm cluster."""
    with instance.running() as running:
        yield running


@pytest.fixture
def visit(portal: Instance) -> Iterator[Callable[[str], Visitor]]:
    """Log users in; stop their sessions at the end."""
    visitors: list[Visitor] = []

    def log_in(name: str) -> Visitor:
        visitor = Visitor(portal, name)
        visitors.append(visitor)
        visitor.log_in().raise_for_status()
        return visitor

    with ExitStack() as leaving:
        yield log_in
        for visitor in visitors:
            leaving.callback(visitor.close)
            leaving.callback(visitor.leave)


@pytest.fixture(scope="module")
def desk(portal: Instance) -> Iterator[Desk]:
    with session_of(portal, USERS[2]) as visitor:
        home = Path(visitor.run("import os; print(os.environ['HOME'])").strip())
        visitor.run("import shutil; shutil.rmtree('logs', ignore_errors=True)")
        yield Desk(visitor, home)


@pytest.fixture
def kernel(desk: Desk) -> Iterator[Callable[..., str]]:
    """Open kernels that end with the test."""
    opened: list[str] = []

    def open_one(name: str = "pytorch") -> str:
        opened.append(desk.user.open_kernel(kernel=name))
        return opened[-1]

    yield open_one
    for name in opened:
        desk.user.session("DELETE", f"/api/kernels/{name}")
