"""What stays of a training: nothing twice, nothing by half, and the first error."""

import argparse
import json
from pathlib import Path

import pytest
from record import Progress, Record, leave_out_after, run, told, write_whole


def test_lines_after_the_checkpoint_are_written_again(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    lines = "".join(json.dumps({"step": step}) + "\n" for step in (10, 20, 30))
    file.write_text(lines + '{"step": 4')
    leave_out_after(file, 20)
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [10, 20]


def test_only_the_first_process_writes(tmp_path: Path) -> None:
    record = Record(tmp_path, is_ours=False, step=0)
    record.add({"epoch": 1, "step": 1, "loss": 1.0})
    record.finish(argparse.Namespace(), Progress(1, 2, 3.0), 2, "CPU", None, {})
    assert not list(tmp_path.iterdir())


def test_a_file_is_there_whole_or_as_before(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_text("before")
    with pytest.raises(TypeError):
        write_whole(file, lambda stream: stream.write("no bytes"))
    assert file.read_text() == "before"


def test_the_first_error_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURMD_NODENAME", "node002")
    told("no such data", tmp_path)
    told("the others are gone", tmp_path)
    assert (tmp_path / "error.txt").read_text() == "Process 3 on node002: no such data\n"


@pytest.mark.parametrize(("error", "is_plain"), [(ValueError("bad"), True), (KeyError(1), False)])
def test_an_error_that_settings_can_put_right_has_no_traceback(
    error: Exception, is_plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)

    def main(_settings: argparse.Namespace) -> None:
        raise error

    run(main, argparse.Namespace(results=str(tmp_path)), ValueError)
    assert ended == [1]
    assert ("Traceback" in (tmp_path / "error.txt").read_text()) is not is_plain
