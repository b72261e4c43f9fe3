"""What is written into a log, and what is not."""

import logging
from collections.abc import Iterator

import pytest

from dsportal.log_limits import LogLimiter


class Pages(logging.Handler):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class World:
    """Whose request is answered, and when."""

    is_stranger = False
    now = 1000.0


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def log(world: World, pages: Pages) -> Iterator[logging.Logger]:
    log = logging.getLogger("test of the logbook")
    log.propagate = False
    log.addHandler(pages)
    LogLimiter(lambda: world.is_stranger, lambda: world.now, at_once_bytes=10_000).keep([pages])
    yield log
    log.removeHandler(pages)


def test_lines_are_cut_and_their_ends_stay(log: logging.Logger, pages: Pages) -> None:
    log.warning("GET /%s from %s", "a" * 60_000, "ada")
    (line,) = pages.lines
    assert len(line) <= 600
    assert line.startswith("GET /aaa")
    assert line.endswith("from ada")


def test_a_long_traceback_is_cut(log: logging.Logger, pages: Pages) -> None:
    try:
        raise ValueError("b" * 60_000)
    except ValueError:
        log.exception("It failed")
    assert pages.lines[0].startswith("It failed\nTraceback")
    assert len(pages.lines[0]) < 7000


def test_strangers_are_not_written_of(log: logging.Logger, pages: Pages, world: World) -> None:
    world.is_stranger = True
    log.warning("403 GET /x")
    assert pages.lines == []
    world.is_stranger = False
    log.warning("404 GET /y")
    assert pages.lines == ["404 GET /y"]


def test_a_fault_that_strangers_meet_is_told_once_in_a_while(
    log: logging.Logger, pages: Pages, world: World
) -> None:
    world.is_stranger = True
    for _ in range(100):
        log.error("The hub does not answer")
    assert len(pages.lines) == 1
    world.now += 61
    log.error("The hub does not answer")
    assert len(pages.lines) == 2


def test_what_is_written_in_all_is_bounded(log: logging.Logger, pages: Pages, world: World) -> None:
    for _ in range(1000):
        log.warning("x" * 100)
    assert len(pages.lines) == 101
    assert "lines are left out" in pages.lines[-1]
    world.now += 60
    log.warning("There is room again")
    assert pages.lines[-1] == "There is room again"


def test_a_line_whose_arguments_do_not_fit_breaks_nothing(
    log: logging.Logger, pages: Pages
) -> None:
    log.warning("%d of %d", "one")
    (line,) = pages.lines
    assert line.startswith("%d of %d (")
    assert line.endswith(": TypeError)")
