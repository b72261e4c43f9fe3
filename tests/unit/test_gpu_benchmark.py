"""The command that runs all measurements of a GPU: what it runs, and how a part of it ends."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from benchmarks.cluster import gpu
from tests.waiting import until

TRIALS = gpu.TEMPLATES / "benchmarks" / "trials"
OUTLIVES = """
import subprocess, sys
from pathlib import Path
child = "import sys, time, pathlib; time.sleep(10); pathlib.Path(sys.argv[1]).touch()"
training = subprocess.Popen([sys.executable, "-c", child, sys.argv[2]])
print("it trains", flush=True)
Path(sys.argv[1]).touch()
training.wait()
"""


def program_of(arguments: list[str]) -> Path:
    """Return the file that a part runs."""
    if arguments[0] != "-m":
        return Path(arguments[0])
    found = importlib.util.find_spec(arguments[1])
    assert found
    assert found.origin
    return Path(found.origin)


@pytest.mark.parametrize("is_tiny", [False, True])
def test_each_part_is_a_program_that_knows_its_options(is_tiny: bool, tmp_path: Path) -> None:
    found = gpu.parts(is_tiny, 3, tmp_path)
    assert tuple(found) == gpu.PARTS
    # Where the measuring notebook's programs share some.
    shared = "".join(file.read_text() for file in TRIALS.glob("*.py"))
    for name, arguments in found.items():
        known = program_of(arguments).read_text() + shared
        options = [word for word in arguments if word.startswith("--")]
        assert [option for option in options if f'"{option}"' not in known] == [], name
        assert len(options) == len(set(options)), name


def test_parts_that_are_compared_take_turns_and_the_others_leave_a_summary(tmp_path: Path) -> None:
    found = gpu.parts(False, 7, tmp_path)
    compared = {name for name, arguments in found.items() if "--rounds" in arguments}
    assert compared == {"lora", "vision", "all-weights", "resnet"}
    for name in compared:
        assert found[name][found[name].index("--rounds") + 1] == "7"
    results = [found[name][found[name].index("--results") + 1] for name in set(found) - compared]
    assert len(set(results)) == 3
    assert {Path(one).parent for one in results} == {tmp_path}
    assert all(found[name] != gpu.parts(True, 7, tmp_path)[name] for name in found)


def test_a_part_ends_with_all_that_it_has_started_when_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, outlived = tmp_path / "begun", tmp_path / "outlived"

    communicate = subprocess.Popen.communicate

    def once_it_has_begun(
        part: "subprocess.Popen[str]", timeout: float | None = None
    ) -> tuple[str, str]:
        # Its time is up as soon as it has begun, however slow the machine is.
        if timeout is None:
            return communicate(part)
        until(begun.exists, seconds=timeout, every=0.01, what="it has begun")
        return communicate(part, timeout=0)

    monkeypatch.setattr(subprocess.Popen, "communicate", once_it_has_begun)
    result = gpu.run("slow", ["-c", OUTLIVES, str(begun), str(outlived)], 60)
    assert result == {"failed": "no time was left", "said": "it trains\n"}
    # All that held its pipe have ended by now.
    assert not outlived.exists()


def test_a_part_is_not_begun_when_no_time_is_left(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    code = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
    assert gpu.run("late", ["-c", code, str(begun)], 0.5) == {"failed": "no time was left"}
    assert not begun.exists()


def test_a_part_gives_its_last_line_or_says_why_it_has_none() -> None:
    result = gpu.run("well", ["-c", "print('round 1'); print('{\"images\": 3}')"], 60)
    assert result.pop("seconds") is not None
    assert result == {"images": 3}
    failed = gpu.run("ill", ["-c", "import package_that_is_nowhere"], 60)
    assert failed["failed"] == "ended with 1"
    assert "No module named 'package_that_is_nowhere'" in str(failed["said"])
