"""The session's TensorBoards, with a small program in TensorBoard's place: these are processes."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dsportal.session.tensorboard import boards as tensorboards
from dsportal.session.tensorboard import words
from dsportal.session.tensorboard.boards import Board, BoardError, Boards, Kit
from tests.checkout import PACKAGES
from tests.unit.loops import in_a_loop
from tests.waiting import until

STAND_IN = """
import sys
print("listening", flush=True)
sys.stdin.read()
"""


class Clock:
    """A clock that goes when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    program = tmp_path / "stand_in.py"
    program.write_text(STAND_IN)
    return Kit(sys.executable, tmp_path, "/user/you/tensorboard/", 2, 3600.0, program)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def made(kit: Kit, clock: Clock) -> AsyncIterator[Boards]:
    boards = Boards(kit, clock)
    try:
        yield boards
    finally:
        await boards.stop_all()


def pid(board: Board) -> int:
    assert board._process is not None
    return board._process.pid


def runs(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@in_a_loop
async def test_a_folder_has_one_board_whatever_it_is_called(kit: Kit, clock: Clock) -> None:
    async with made(kit, clock) as boards:
        first, again = await asyncio.gather(
            boards.open("logs", Path("/home/you/logs")),
            boards.open("link/logs", Path("/home/you/logs")),
        )
        other = await boards.open("other", Path("/home/you/other"))
        assert first is again
        assert other.id != first.id
        assert boards.awake() == [first, other]
        assert first.address == f"/user/you/tensorboard/{first.id}/"
        assert other.socket.parent == kit.runtime_folder


@in_a_loop
async def test_a_board_that_died_is_started_again_by_the_next_request(
    kit: Kit, clock: Clock
) -> None:
    async with made(kit, clock) as boards:
        board = await boards.open("logs", Path("/home/you/logs"))
        died = pid(board)
        os.kill(died, 9)
        await asyncio.wait_for(board._process.wait(), 10)  # type: ignore[union-attr]
        assert boards.awake() == []
        assert await boards.use(board.id) is board
        assert boards.awake() == [board]
        assert pid(board) != died


@in_a_loop
async def test_a_stopped_board_is_not_started_by_a_page_left_open(kit: Kit, clock: Clock) -> None:
    async with made(kit, clock) as boards:
        board = await boards.open("logs", Path("/home/you/logs"))
        ended = pid(board)
        assert await boards.stop(board.id)
        assert not runs(ended)
        assert await boards.use(board.id) is None
        assert not await boards.stop(board.id)


@in_a_loop
async def test_one_more_than_may_run_takes_the_place_of_the_longest_unused(
    kit: Kit, clock: Clock
) -> None:
    async with made(kit, clock) as boards:
        first = await boards.open("1", Path("/1"))
        clock.now += 100
        second = await boards.open("2", Path("/2"))
        clock.now += 100
        await boards.use(first.id)
        third = await boards.open("3", Path("/3"))
        assert boards.awake() == [first, third]
        # Those two are looked at: none gives way, and the one that sleeps can wake later.
        with pytest.raises(BoardError, match=words.too_many(2)):
            await boards.use(second.id)
        assert boards.awake() == [first, third]
        clock.now += 100
        assert await boards.use(second.id) is second


@in_a_loop
async def test_many_at_once_do_not_exceed_what_may_run(kit: Kit, clock: Clock) -> None:
    async with made(kit, clock) as boards:
        asked = [boards.open(str(number), Path(f"/{number}")) for number in range(6)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(answer, Board) for answer in answers) == 2
        assert sum(isinstance(answer, BoardError) for answer in answers) == 4
        assert len(boards.awake()) == 2


@in_a_loop
async def test_one_that_is_just_being_opened_gives_its_place_to_nobody(
    kit: Kit, clock: Clock
) -> None:
    async with made(kit, clock) as boards:
        await asyncio.gather(*(boards.open(name, Path(f"/{name}")) for name in "12"))
        clock.now += 100
        opened = await asyncio.gather(*(boards.open(name, Path(f"/{name}")) for name in "34"))
        assert boards.awake() == opened


@in_a_loop
async def test_a_board_that_nobody_looks_at_sleeps_and_wakes(kit: Kit, clock: Clock) -> None:
    async with made(replace(kit, idle_seconds=0.4), clock) as boards:
        board = await boards.open("logs", Path("/home/you/logs"))
        ended = pid(board)
        await asyncio.sleep(0.3)
        assert boards.awake() == [board]
        clock.now += 1
        await asyncio.to_thread(
            until, lambda: not boards.awake() and not runs(ended), seconds=10, what="it sleeps"
        )
        assert await boards.use(board.id) is board
        assert boards.awake() == [board]


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "", "import os; os.close(1); input()"])
@in_a_loop
async def test_a_program_that_does_not_start_is_said_in_words(
    kit: Kit, clock: Clock, program: str
) -> None:
    kit.program.write_text(program)
    async with made(kit, clock) as boards:
        with pytest.raises(BoardError, match=words.not_started("~/logs")):
            await boards.open("logs", Path("/home/you/logs"))
        assert boards.awake() == []
        # It is not given up for good.
        kit.program.write_text(STAND_IN)
        assert await boards.open("logs", Path("/home/you/logs")) in boards.awake()


@in_a_loop
async def test_a_board_that_never_ran_takes_nobodys_place(kit: Kit, clock: Clock) -> None:
    async with made(replace(kit, python="/no/such/python", most=1), clock) as boards:
        with pytest.raises(BoardError, match=words.not_started("~/1")):
            await boards.open("1", Path("/1"))
        assert boards.awake() == []


@in_a_loop
async def test_a_start_that_is_given_up_leaves_nothing(kit: Kit, clock: Clock) -> None:
    kit.program.write_text("import sys; open('/dev/stdin').read()")
    before = children()
    async with made(kit, clock) as boards:
        opening = asyncio.create_task(boards.open("logs", Path("/home/you/logs")))
        (begun,) = await asyncio.to_thread(
            until, lambda: children() - before, seconds=10, what="it has begun"
        )
        opening.cancel()
        await asyncio.wait({opening})
        assert boards.awake() == []
        await asyncio.to_thread(until, lambda: not runs(begun), seconds=10, what="it has ended")


def children() -> set[int]:
    own = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(number) for number in own.split()}


def test_boards_end_with_the_session_even_when_it_is_killed(kit: Kit, tmp_path: Path) -> None:
    session = tmp_path / "session.py"
    session.write_text(
        f"import asyncio, os, sys; sys.path[:0] = {PACKAGES!r}\n"
        "from pathlib import Path\n"
        "from dsportal.session.tensorboard.boards import Boards, Kit\n"
        "async def main():\n"
        "    kit = Kit(sys.executable, Path('.'), '/', 2, None, Path(sys.argv[1]))\n"
        "    board = await Boards(kit).open('logs', Path('/logs'))\n"
        "    Path(sys.argv[2]).write_text(str(board._process.pid))\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    note = tmp_path / "pid"
    argv = [sys.executable, str(session), str(kit.program), str(note)]
    subprocess.run(argv, check=False, timeout=30)
    started = int(note.read_text())
    until(lambda: not runs(started), seconds=10, what="the board has ended with its session")


@in_a_loop
async def test_a_folder_opened_again_while_its_board_stops_has_a_socket_of_its_own(
    kit: Kit, clock: Clock
) -> None:
    slow = kit.runtime_folder / "slow"
    slow.touch()
    kit.program.write_text(LISTENS.format(slow=str(slow)))
    async with made(kit, clock) as boards:
        opening = asyncio.create_task(boards.open("logs", Path("/home/you/logs")))
        await asyncio.to_thread(until, lambda: not slow.exists(), seconds=10, what="it begins")
        (starting,) = boards.awake()
        stopping = asyncio.create_task(boards.stop(starting.id))
        await asyncio.sleep(0)
        again = await boards.open("logs", Path("/home/you/logs"))
        await asyncio.gather(opening, stopping)
        _, writer = await asyncio.open_unix_connection(again.socket)
        writer.close()
        assert not starting.socket.exists()


# As werkzeug does, it takes the place of a socket that is there.
LISTENS = """
import os, socket, sys, time
path = next(word.partition("=")[2] for word in sys.argv if word.startswith("--socket="))
if os.path.exists({slow!r}):
    os.unlink({slow!r})
    time.sleep(2)
if os.path.exists(path):
    os.unlink(path)
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(path)
    listener.listen()
    print("listening", flush=True)
    sys.stdin.read()
"""


@in_a_loop
async def test_an_interpreter_on_a_mount_that_does_not_answer_holds_up_nobody(
    kit: Kit, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    exists = os.path.exists

    def silent(place: str) -> bool:
        if place != "/nas/bin/python":
            return exists(place)
        assert threading.current_thread() is not threading.main_thread()
        return release.wait(30)

    monkeypatch.setattr(os.path, "exists", silent)
    monkeypatch.setattr(tensorboards, "_FILE_SECONDS", 0.1)
    async with made(replace(kit, python="/nas/bin/python"), clock) as boards:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", None)
        try:
            with pytest.raises(BoardError, match=words.not_started("~/logs")):
                await boards.open("logs", Path("/home/you/logs"))
        finally:
            release.set()
