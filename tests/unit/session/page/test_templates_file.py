from pathlib import Path, PurePosixPath

import pytest

from dsportal.session.page.templates_file import Companion, Groups, companions_in, groups_in

NOTEBOOK = PurePosixPath("sweeps/sweep.ipynb")


def test_a_companion_is_a_file_and_perhaps_a_function_in_it(tmp_path: Path) -> None:
    (tmp_path / "templates.toml").write_text(
        f'[companions]\n"{NOTEBOOK}" = {{ objective = "sweeps/mine.py:value", program = "a.py" }}'
    )
    objective, program = companions_in(tmp_path, NOTEBOOK)
    assert objective == Companion("objective", PurePosixPath("sweeps/mine.py"), "value")
    assert objective.named("mine_1.py") == "mine_1.py:value"
    assert program == Companion("program", PurePosixPath("a.py"))
    assert program.named("a_1.py") == "a_1.py"
    assert companions_in(tmp_path, PurePosixPath("sweeps/other.ipynb")) == ()
    assert groups_in(tmp_path) == Groups()


def test_a_folder_that_says_nothing_has_no_companions_and_tells_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert companions_in(tmp_path, NOTEBOOK) == ()
    assert not caplog.records


@pytest.mark.parametrize(
    "text",
    ["[companions", "companions = 1", f'[companions]\n"{NOTEBOOK}" = "a.py"',
     f'[companions]\n"{NOTEBOOK}" = {{ program = 1 }}'],
)  # fmt: skip
def test_broken_companions_are_told_and_nothing_is_copied(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "templates.toml").write_text(text)
    assert companions_in(tmp_path, NOTEBOOK) == ()
    assert "copied with templates cannot be read" in caplog.text
