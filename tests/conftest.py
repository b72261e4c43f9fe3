"""Fixtures for all tests that need the running portal."""

import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path

import hypothesis
import pytest
from failures import REPORTS, seconds_of_files
from pytest_timeout import Settings

from tests import instance
from tests.desk import Desk
from tests.instance import USERS, Instance
from tests.shuffling import shuffled
from tests.visitor import Visitor, session_of

# How long an example takes is the machine's affair.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


_SAID_CHARACTERS = 4000
_UNIT = instance.ROOT / "tests/unit"
_UNIT_FIXTURES_SECONDS = 300.0
FIXTURES_SECONDS = 3600.0
"""All fixtures of a test together, and again to take them down.

For the first of its module or process that may be a deployment, a machine that boots, and where the
cache is empty all that these are made of: each step has a limit of its own, of up to 25 minutes.
"""


@contextmanager
def _limited(item: pytest.Item) -> Iterator[None]:
    """Let fixtures fail that never come to an end: pytest-timeout's own limit is for the test."""
    seconds = _UNIT_FIXTURES_SECONDS if item.path.is_relative_to(_UNIT) else FIXTURES_SECONDS
    limit = Settings(seconds, "signal", func_only=False, disable_debugger_detection=False)
    item.config.hook.pytest_timeout_set_timer(item=item, settings=limit)
    try:
        yield
    finally:
        item.config.hook.pytest_timeout_cancel_timer(item=item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Limit how long a test's fixtures may take."""
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Limit how long their ends may take."""
    with _limited(item):
        return (yield)


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


def kind(items: Sequence[pytest.Item]) -> str:
    """Say what keeps the tests of a file: the clock, the processors, or a little of both."""
    if any(item.get_closest_marker("waits") for item in items):
        return "waits"
    return "computes" if {"notebooks", "browser"} & {*items[0].path.parts} else "both"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a run may be asked for besides."""
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in another order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mix files that compute with such that wait: side by side they should use all there is.

    Each kind is spread over the whole run by its seconds in the last one, the longest first: all
    that runs side by side ends together. Before there are any, those come first that may take
    longest, and notebooks of several that may take as long.
    """
    seconds = seconds_of_files(REPORTS / "here.xml")
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)

    def lasted(file: Path) -> float:
        return seconds.get(str(file.relative_to(instance.ROOT)), 0)

    def order(file: Path) -> tuple[bool, float, float, bool]:
        limits = [item.get_closest_marker("timeout") for item in files[file]]
        longest = max(float(limit.args[0]) if limit else 0 for limit in limits)
        return lasted(file) > 0, -lasted(file), -longest, "notebooks" not in file.parts

    places: dict[Path, float] = {}
    for alike in ("waits", "computes", "both"):
        those = sorted((file for file in files if kind(files[file]) == alike), key=order)
        # One that has not run yet counts a little, so that these do not all come at once.
        weights = [lasted(file) or 1 for file in those]
        before = accumulate(weights, initial=0.0)
        places |= {file: done / sum(weights) for file, done in zip(those, before, strict=False)}
    items.sort(key=lambda item: places[item.path])
    if seed := config.getoption("shuffle"):
        items[:] = shuffled(items, seed)


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
