"""The tiering test, run whole against a stand-in of the NAS; files and access times are real."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from filesystem import tiers
from tests.onefs import StandIn
from tests.pages import how_to, lines

PROGRAM = Path(tiers.__file__).parents[1] / "tiering.py"


def run(nas: StandIn, results: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    words = {
        "python3": sys.executable,
        "~/templates/benchmarks/tiering.py": str(PROGRAM),
        "~/logs/tiering": str(results),
        "/mnt/isilon/test": str(nas.folder),
        "/ifs/data/datascience/test": "/ifs/data",
        "https://nas.example.org:8080": nas.url,
        "--gib 64": "--gib 0.002",
    }
    (argv,) = lines(how_to("try-the-tiers.md", 0, words))
    small = ["--files=2", "--seconds=0.5", "--ramp=0", "--poll-seconds=0.01"]
    return subprocess.run(
        [*argv, *small, *more],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_files_go_to_the_cold_tier_and_come_back_when_they_are_read(
    nas: StandIn, tmp_path: Path
) -> None:
    done = run(nas, tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "hot, cold and hot again" in done.stdout
    summary: dict[str, Any] = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert summary["figures"]["is_tiered"]
    assert len(summary["parts"]) == 9
    assert [part["tier"] for part in summary["parts"] if "tier" in part] == ["hot", "cold", "hot"]
    assert summary["nas"], "its statistics are beside the steps"
    assert list(nas.folder.iterdir()) == [], "nothing stays behind"
    again = run(nas, tmp_path / "r")
    assert "use another folder" in again.stderr + again.stdout
    secret = "not a secret"
    assert secret not in json.dumps(summary) + done.stdout + done.stderr


def test_a_nas_without_access_times_is_not_tried(nas: StandIn, tmp_path: Path) -> None:
    nas.keeps_access_times = False
    done = run(nas, tmp_path / "r")
    assert done.returncode != 0
    assert "does not keep access times" in done.stderr + done.stdout
    assert not any(nas.folder.iterdir())


def test_a_tier_that_is_not_there_is_told_with_those_that_are(nas: StandIn, tmp_path: Path) -> None:
    done = run(nas, tmp_path / "r", "--cold=archive")
    assert "no tier 'archive'; it has cold, hot" in done.stderr + done.stdout


def test_files_are_removed_when_a_move_fails(nas: StandIn, tmp_path: Path) -> None:
    nas.states = ["failed"]
    done = run(nas, tmp_path / "r")
    assert "job 1 is failed" in done.stderr + done.stdout
    assert not any(nas.folder.iterdir())
