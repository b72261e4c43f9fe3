"""What the launcher says is its user's word: only what was asked for is taken."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm import launcher_answers

A = "a" * 32


@pytest.mark.parametrize("text", ["", "x", "[]", "null", "7", '"x"', "[" * 100_000, "1" * 10_000])
def test_what_is_no_object_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UnreadableOutput) as caught:
        launcher_answers.read(text)
    assert len(caught.value.detail) < 600


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (launcher_answers.job_id, {}),
        (launcher_answers.job_id, {"job_id": "7"}),
        (launcher_answers.job_id, {"job_id": True}),
        (launcher_answers.job_id, {"job_id": 7.0}),
        (launcher_answers.job_id, {"job_id": 0}),
        (launcher_answers.job_id, {"job_id": -7}),
        (launcher_answers.job_id, {"job_id": 1 << 32}),
        (launcher_answers.job_ids, {}),
        (launcher_answers.job_ids, {"job_ids": 7}),
        (launcher_answers.job_ids, {"job_ids": {"7": 7}}),
        (launcher_answers.job_ids, {"job_ids": ["7"]}),
        (launcher_answers.sessions, {}),
        (launcher_answers.sessions, {"sessions": [A]}),
        (launcher_answers.sessions, {"sessions": {"x": A}}),
        (launcher_answers.sessions, {"sessions": {"\u0667": A}}),
        (launcher_answers.sessions, {"sessions": {"7": 7}}),
        (launcher_answers.sessions, {"sessions": {"7": f"{A}\n"}}),
        (launcher_answers.sessions, {"sessions": {"9999999999": A}}),
        (launcher_answers.lines, {}),
        (launcher_answers.lines, {"lines": "x"}),
        (launcher_answers.lines, {"lines": [7]}),
        (launcher_answers.forecast, {}),
        (launcher_answers.forecast, {"start": 7}),
        (launcher_answers.forecast, {"start": "x", "never": "y"}),
        (launcher_answers.complaint, {"error": ["x"]}),
        (launcher_answers.complaint, {"error": "x", "refused": "yes"}),
    ],
)
def test_what_is_not_of_its_type_is_refused(
    read: Callable[[dict[str, Any]], object], answer: dict[str, Any]
) -> None:
    with pytest.raises(UnreadableOutput):
        read(answer)


def test_what_the_launcher_says_is_read() -> None:
    assert launcher_answers.read(json.dumps({"job_id": 7})) == {"job_id": 7}
    assert launcher_answers.job_id({"job_id": 7}) == 7
    assert launcher_answers.job_ids({"job_ids": [7, 8]}) == [7, 8]
    assert launcher_answers.sessions({"sessions": {"7": A}}) == {7: A}
    assert launcher_answers.lines({"lines": ["x", "y"]}) == ["x", "y"]
    assert launcher_answers.forecast({"never": "x"}) == {"never": "x"}
    assert launcher_answers.complaint({"error": "x", "refused": True}) == ("x", True)
    assert launcher_answers.complaint({"job_id": 7}) is None


def test_words_are_cut_and_cannot_forge_a_line_of_a_log() -> None:
    said = launcher_answers.lines(
        {"lines": ["x\n[W 2026] forged\x1b[2J\u2028"] + ["y" * 10_000] * 20}
    )
    assert len(said) == 15
    assert max(map(len, said)) == 500
    assert launcher_answers.one_line("x\n[W 2026] forged\x1b[2J\u2028") == "x [W 2026] forged [2J"
