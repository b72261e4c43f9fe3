"""What one visit with JupyterLab has open, and what of it is counted."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks.portal.soak.findings import Findings
from benchmarks.portal.soak.jupyterlab import BOARDS, OpenJupyterLab, opened
from tests.visitor import Visitor


@pytest.fixture(autouse=True)
def _boards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenJupyterLab, "_opened", lambda _, number: f"board-{number}")
    monkeypatch.setattr(OpenJupyterLab, "_runs_of", lambda *_: ["run"])


def user(said: Sequence[str]) -> Visitor:
    answers = iter(said)
    found = SimpleNamespace(
        name="anna", open_kernel=lambda: "kernel", run_in=lambda *_: next(answers)
    )
    return cast("Visitor", found)


def test_looks_are_counted_and_what_is_open_side_by_side() -> None:
    findings = Findings()
    for _ in range(2):
        with opened(user("123"), findings) as lab:
            for _ in range(3):
                lab.look()
    assert findings.counts == {"looks at counters": 6, "looks at TensorBoards": 10}
    assert findings.most_at_once == {"JupyterLabs": 1, "TensorBoards": BOARDS}
    assert findings.found == []


def test_a_counter_that_begins_again_is_found() -> None:
    findings = Findings()
    with opened(user("121"), findings) as lab:
        for _ in range(3):
            lab.look()
    assert [one.kind for one in findings.found] == ["counter reset"]
