"""What stays of a training: nothing twice, nothing by half, and the first error."""

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from record import (
    SCHEMA_VERSION,
    Progress,
    Record,
    ResumeError,
    StepTimer,
    StopChecks,
    Stretch,
    arrived,
    leave_out_after,
    run,
    same_run,
    told,
    write_whole,
)
from schedule import Schedule


def test_lines_after_the_checkpoint_are_written_again(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    lines = "".join(json.dumps({"step": step}) + "\n" for step in (10, 20, 30))
    file.write_text(lines + '{"step": 4')
    leave_out_after(file, 20)
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [10, 20]


def test_no_half_of_a_checkpoint_stays_of_a_process_that_was_killed(tmp_path: Path) -> None:
    half, whole = tmp_path / ".checkpoint.pt.4711", tmp_path / "checkpoint.pt"
    half.touch()
    whole.touch()
    Record(tmp_path, is_ours=False, step=0)
    assert half.exists()
    Record(tmp_path, is_ours=True, step=0).close(is_whole=False)
    assert whole.exists()
    assert not half.exists()


def test_only_the_first_process_writes(tmp_path: Path) -> None:
    record = Record(tmp_path, is_ours=False, step=0)
    record.add({"epoch": 1, "step": 1, "loss": 1.0})
    record.finish(argparse.Namespace(), Progress(1, 2, 3.0), 2, "CPU", None, {})
    record.summarize({})
    assert not list(tmp_path.iterdir())


def test_a_line_without_an_epoch_is_said_by_its_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Record(tmp_path, is_ours=True, step=0).add({"step": 5, "steps": 9, "held_out_loss": 0.5})
    assert capsys.readouterr().out.splitlines()[-1] == "step 5  held out loss 0.5"


def test_a_file_that_another_node_has_written_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "checkpoint.pt"
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            file.touch()

    monkeypatch.setattr(time, "sleep", sleep)
    assert arrived(file) == file
    assert pauses == [1.0] * 3
    # What does not come is missed by whoever opens it.
    assert arrived(tmp_path / "never", seconds=0.0) == tmp_path / "never"


def test_a_training_goes_on_without_tensorboards_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    Record(tmp_path, is_ours=True, step=0).add({"epoch": 1, "step": 1, "loss": 1.0})
    assert json.loads((tmp_path / "progress.jsonl").read_text())["loss"] == 1.0
    assert "no curves for TensorBoard" in capsys.readouterr().out


def test_a_file_is_there_whole_or_as_before(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_text("before")
    with pytest.raises(TypeError):
        write_whole(file, lambda stream: stream.write("no bytes"))
    assert file.read_text() == "before"
    # A part of one would keep a disk full.
    assert list(tmp_path.iterdir()) == [file]


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


@pytest.mark.parametrize(("has_group", "ends"), [(False, []), (True, [0])])
def test_a_process_that_trained_with_others_ends_without_the_interpreters_tidying_up(
    has_group: bool, ends: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    distributed = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: has_group)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(distributed=distributed))
    run(lambda _: None, argparse.Namespace(results=str(tmp_path)))
    assert ended == ends


class Clock:
    """Stands in for the machine's: steps take what they are said to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def stretches(seconds: list[float], report_every: int, untimed: int) -> list[Stretch]:
    """Time steps of 8 images each."""
    clock = Clock()
    timer = StepTimer(untimed, clock)
    found = []
    for number, taken in enumerate(seconds, 1):
        clock.now += taken
        timer.step(8, lambda: None)
        if number % report_every == 0:
            found.append(timer.end())
            clock.now += 100  # a checkpoint
            timer.begin()
    return found


@pytest.mark.parametrize("report_every", [1, 2, 3, 6])
def test_the_first_steps_of_a_process_do_not_count(report_every: int) -> None:
    # Compiling takes half a minute.
    found = [one for one in stretches([30, 5, 1, 1, 1, 1], report_every, 2) if one.is_settled]
    images, seconds = sum(one.images for one in found), sum(one.seconds for one in found)
    assert images / seconds == pytest.approx(8)
    assert images >= 8 * 3


def test_the_device_is_waited_for_before_the_first_step_that_counts() -> None:
    clock, waited = Clock(), []
    timer = StepTimer(2, clock)
    for _ in range(4):
        timer.step(8, lambda: waited.append(clock.now))
        clock.now += 1
    assert waited == [1.0]


def test_a_training_that_is_too_short_has_no_speed(tmp_path: Path) -> None:
    progress = Progress(step=8)
    schedule = Schedule(64, 8, 1, 1, 0, rate=0.1, warmup=0.0)
    record = Record(tmp_path, is_ours=False, step=0)
    record.report(progress, schedule, Stretch(64, 9.0, is_settled=False), 1.0, 0.5)
    assert progress.images_per_second is None
    record.report(progress, schedule, Stretch(64, 2.0, is_settled=True), 1.0, 0.5)
    assert progress.images_per_second == 32


def settings(**more: object) -> argparse.Namespace:
    return argparse.Namespace(**{"results": "/r", "rate": 0.1, "epochs": 3, "steps": 0, **more})


def test_a_training_goes_on_only_with_the_settings_that_it_was_begun_with(tmp_path: Path) -> None:
    same_run(tmp_path, settings(), 2, is_first=True, is_begun=False)
    same_run(tmp_path, settings(results="/other", steps=9), 2, is_first=True, is_begun=True)
    with pytest.raises(ResumeError, match=r"epochs = 3, not 5; rate = 0\.1, not 0\.2: use another"):
        same_run(tmp_path, settings(epochs=5, rate=0.2), 2, is_first=False, is_begun=True)
    with pytest.raises(ResumeError, match="processes = 2, not 4"):
        same_run(tmp_path, settings(), 4, is_first=True, is_begun=True)


def test_settings_without_a_checkpoint_are_begun_anew(tmp_path: Path) -> None:
    same_run(tmp_path, settings(), 2, is_first=True, is_begun=False)
    same_run(tmp_path, settings(rate=0.2), 2, is_first=True, is_begun=False)
    same_run(tmp_path, settings(rate=0.2), 2, is_first=True, is_begun=True)


def test_a_setting_that_the_program_did_not_have_yet_is_no_other_training(tmp_path: Path) -> None:
    same_run(tmp_path, settings(), 2, is_first=True, is_begun=False)
    same_run(tmp_path, settings(broken="stop"), 2, is_first=True, is_begun=True)


def test_a_setting_that_came_later_was_what_the_program_did_before(tmp_path: Path) -> None:
    same_run(tmp_path, settings(), 2, is_first=True, is_begun=False)
    later = {"accumulate": 1}
    same_run(tmp_path, settings(accumulate=1), 2, is_first=True, is_begun=True, added=later)
    with pytest.raises(ResumeError, match="accumulate = 1, not 4"):
        same_run(tmp_path, settings(accumulate=4), 2, is_first=True, is_begun=True, added=later)


def test_a_training_of_before_there_were_versions_goes_on(tmp_path: Path) -> None:
    same_run(tmp_path, settings(), 2, is_first=True, is_begun=False)
    file = tmp_path / "settings.json"
    content = json.loads(file.read_text())
    assert content.pop("schema") == SCHEMA_VERSION
    file.write_text(json.dumps(content))
    same_run(tmp_path, settings(), 2, is_first=True, is_begun=True)


def test_a_training_of_newer_programs_is_another(tmp_path: Path) -> None:
    same_run(tmp_path, settings(), 2, is_first=True, is_begun=False)
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": SCHEMA_VERSION + 1}))
    with pytest.raises(ResumeError, match=r"schema = 2, not 1: use another folder"):
        same_run(tmp_path, settings(), 2, is_first=True, is_begun=True)


def test_processes_ask_each_other_often_enough_and_not_after_each_fast_step() -> None:
    stop, asked = SimpleNamespace(is_wanted=False), []

    def sums(*values: float) -> list[float]:
        asked.append(values)
        return [sum(values)]

    checks = StopChecks(stop, sums)  # type: ignore[arg-type]  # a stand-in
    # As long as nothing is known, the steps may be slow.
    assert all(checks.is_due(step) for step in range(1, 12))
    for seconds, every in ((30.0, 1), (3.0, 6), (0.001, 20_000), (0.0, 20_000)):
        checks.told(seconds)
        due = [step for step in range(1, 2 * every + 1) if checks.is_due(step)]
        assert due == [every, 2 * every]
    # Between two such steps nobody is asked, whoever wants to stop.
    assert not checks.says_stop(20_000)
    stop.is_wanted = True
    assert not checks.says_stop(20_001)
    assert checks.says_stop(40_000)
    assert len(asked) == 2
