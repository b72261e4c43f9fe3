"""A training in the session: what is printed and drawn while it goes on."""

from pathlib import Path

import pytest
import runs
from plans import Plan
from runs import local

PROGRAM = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--results") + 1])
with (folder / "progress.jsonl").open("a") as progress:
    for step in (10, 20, 30):
        line = {"step": step, "steps": 30, "loss": 1 / step, "time": 0.0}
        print(json.dumps(line), file=progress, flush=True)
        print("step", step, *[word for word in sys.argv if word.startswith("--rate")], flush=True)
if "--latin=yes" in sys.argv:
    os.write(1, b"caf\\xe9\\n")
if "--killed=yes" in sys.argv:
    os.kill(os.getpid(), 9)
if "--fail=yes" in sys.argv:
    (folder / "error.txt").write_text("the data are broken\\n")
    sys.exit(1)
"""
Shown = list[tuple[str, bytes]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What would be drawn below the cell: there is no notebook here."""
    found: Shown = []
    monkeypatch.setattr(local.Screen, "_show", lambda _, *drawn: found.append(drawn))
    return found


def plan(folder: Path, **settings: object) -> Plan:
    program = folder / "train.py"
    program.write_text(PROGRAM)
    return Plan(nodes=1, gpus_per_node=0, settings=settings, name="some", program=program)


def test_it_is_drawn_as_it_goes_on(
    shown: Shown,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(local, "DRAW_SECONDS", 0.0)
    run = runs.train_here(plan(tmp_path, rate=0.1), tmp_path)
    assert run.folder == tmp_path / "some"
    assert "step 30 --rate=0.1" in capsys.readouterr().out
    assert 1 <= len(shown) <= 4
    bar, curves = shown[-1]
    assert bar.startswith('<progress max="30" value="30" aria-label="Training"></progress>')
    assert "step 30 of 30: loss 0.0333" in bar
    assert curves.startswith(b"\x89PNG")


def test_its_end_is_drawn_however_fast_it_was(shown: Shown, tmp_path: Path) -> None:
    runs.train_here(plan(tmp_path), tmp_path)
    assert 'value="30"' in shown[-1][0]
    assert len(shown) <= 2


def test_one_that_ends_early_has_a_full_bar() -> None:
    line = {"step": 72, "steps": 2000, "loss": 0.25}
    assert 'max="2000" value="72"' in local.bar(line, is_complete=False)
    ended = local.bar(line, is_complete=True)
    assert 'max="72" value="72"' in ended
    assert "step 72 of 2,000" in ended


def test_one_that_fails_says_why(shown: Shown, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="the data are broken"):
        runs.train_here(plan(tmp_path, fail="yes"), tmp_path)


def test_one_that_is_killed_is_said_to_lack_memory(shown: Shown, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="run out of memory"):
        runs.train_here(plan(tmp_path, killed="yes"), tmp_path)


def test_what_is_no_text_does_not_end_it(
    shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.train_here(plan(tmp_path, latin="yes"), tmp_path)
    assert "caf\N{REPLACEMENT CHARACTER}\n" in capsys.readouterr().out
    with (tmp_path / "some/progress.jsonl").open("ab") as file:
        file.write(b'{"step": 30, "note": "caf\xe9"}\n')
    assert len(runs.Run(tmp_path / "some").progress()) == 4


def test_what_is_there_of_before_is_no_error(shown: Shown, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some/error.txt").write_text("of before\n")
    runs.train_here(plan(tmp_path), tmp_path)
    assert not (tmp_path / "some/error.txt").exists()
