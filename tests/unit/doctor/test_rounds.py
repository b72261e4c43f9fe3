"""The doctor's round: side by side, for a limited time, whatever a check does."""

import os
import signal
import time
from pathlib import Path

import pytest

from dsportal.doctor import command, expected, plan, rounds
from dsportal.doctor.expected import Expected, ExpectedError, ExpectedKernel, ExpectedSlurm, Mount
from dsportal.doctor.finding import Finding, State, ok
from dsportal.doctor.rounds import Check, run


def hang() -> Finding:
    time.sleep(1000)
    return ok("")


def break_down() -> Finding:
    raise ValueError("a mistake")


def vanish() -> Finding:
    os.kill(os.getpid(), signal.SIGKILL)
    return ok("")


def say(words: str) -> Check:
    return Check(words, lambda: ok(words), "")


def test_a_check_that_hangs_holds_up_no_other() -> None:
    slow = Check("slow", hang, "look there", seconds=0.2)
    lines = run([slow, slow, say("a"), say("b")], is_root=True)
    assert [line.finding.state for line in lines] == [State.FAILED] * 2 + [State.OK] * 2
    assert lines[0].finding == Finding(State.FAILED, "no answer in 0.2 s", "look there")


def test_no_child_is_left_behind() -> None:
    # Those that have ended and wait to be asked for are children, too.
    children = Path("/proc/thread-self/children")
    before = children.read_text()
    run([Check("slow", hang, "", seconds=0.05), say("a")] * 10, is_root=True)
    assert children.read_text() == before


@pytest.mark.parametrize("ask", [break_down, vanish])
def test_a_check_that_breaks_down_is_a_failure(ask: object) -> None:
    broken = Check("broken", ask, "")  # type: ignore[arg-type]
    lines = run([broken, say("a")], is_root=True)
    assert [line.finding.state for line in lines] == [State.FAILED, State.OK]


def test_a_long_answer_arrives() -> None:
    (line,) = run([say("ä" * 100_000)], is_root=True)
    assert line.finding.state is State.OK
    assert set(line.finding.found) == {"ä"}


def test_what_only_root_may_ask_is_left_out_and_told() -> None:
    only = Check("secret", hang, "", needs_root=True)
    lines = run([only, say("a")], is_root=False)
    assert [line.finding.state for line in lines] == [State.LEFT_OUT, State.OK]


def test_files_of_several_roles_are_joined(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"disks": ["/"], "mounts": [{"path": "/mnt/a"}]}')
    (tmp_path / "b.json").write_text(
        '{"disks": ["/opt"], "slurm": {"conf": "/c", "munge_socket": "/m", "nodes": ["n1"]},'
        ' "kernels": [{"name": "r", "language": "R"}]}'
    )
    assert expected.load(tmp_path) == Expected(
        disks=("/", "/opt"),
        mounts=(Mount("/mnt/a"),),
        slurm=ExpectedSlurm("/c", "/m", ("n1",)),
        kernels=(ExpectedKernel("r", language="R"),),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"discs": ["/"]}', "discs: no such key of Expected"),
        ('{"disks": "/"}', "must be a list"),
        ('{"slurm": {"munge_socket": "/m"}}', "conf"),
        ("{", "a.json"),
        ("[]", "no JSON object"),
    ],
)
def test_what_cannot_be_used_is_told(
    tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ExpectedError, match=words):
        expected.load(tmp_path)
    assert command.main(["--expected", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_a_host_that_was_never_deployed_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExpectedError, match="deploy this host"):
        expected.load(tmp_path)


def test_the_exit_status_says_whether_something_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text('{"disks": ["/proc"]}')
    assert command.main(["--expected", str(tmp_path)]) == 0
    (tmp_path / "a.json").write_text('{"disks": ["/no/such/folder"]}')
    assert command.main(["--expected", str(tmp_path), "--json"]) == 1
    assert '"state": "failed"' in capsys.readouterr().out


def test_nothing_expected_is_nothing_asked() -> None:
    assert plan.checks_of(Expected()) == []


def test_the_node_exporter_is_told_by_numbers(tmp_path: Path) -> None:
    file = tmp_path / "doctor.prom"
    (tmp_path / "a.json").write_text('{"disks": ["/proc", "/no/such \\"folder"]}')
    assert command.main(["--expected", str(tmp_path), "--textfile", str(file)]) == 1
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert lines[:2] == [
        'portal_doctor_state{check="disk /proc"} 0',
        'portal_doctor_state{check="disk /no/such \\"folder"} 2',
    ]
    assert lines[2].startswith("portal_doctor_asked_timestamp_seconds 1")
    assert file.stat().st_mode & 0o777 == 0o644


def test_what_hangs_even_when_killed_is_not_asked_again_until_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --every, a dead mount got one more process for good in each round."""

    def ask() -> Finding:
        with (tmp_path / "asked").open("a") as asked:
            asked.write("x")
        return hang() if (tmp_path / "is-dead").exists() else ok("there")

    kill, hanging = os.killpg, dict[int, str]()
    monkeypatch.setattr(rounds, "_END_SECONDS", 0.05)
    monkeypatch.setattr(os, "killpg", lambda *_: None)  # as in the kernel
    (tmp_path / "is-dead").touch()
    checks = [Check("mount", ask, "look there", seconds=1), say("a")]
    try:
        for _ in range(3):
            lines = run(checks, is_root=True, hanging=hanging)
            assert [line.finding.state for line in lines] == [State.FAILED, State.OK]
            assert lines[0].finding.next_step == "look there"
        assert (tmp_path / "asked").read_text() == "x"
    finally:
        for pid in hanging:
            kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    (tmp_path / "is-dead").unlink()
    lines = run(checks, is_root=True, hanging=hanging)
    assert [line.finding.found for line in lines] == ["there", "a"]
    assert hanging == {}
