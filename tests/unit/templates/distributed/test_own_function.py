import os.path
from pathlib import Path

import pytest
from own_function import FunctionError, find


def test_a_file_s_function_is_found_with_what_stands_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_it.py").write_text("ANSWER = 42\n")
    (tmp_path / "of_mine.py").write_text("import beside_it\ndef f(): return beside_it.ANSWER\n")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("~/of_mine.py:f")() == 42


def test_a_module_s_function_is_found() -> None:
    assert find("os.path:join") is os.path.join


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("training", "is neither FILE.py:FUNCTION nor MODULE:FUNCTION"),
        (":f", "is neither"),
        ("os.path:", "is neither"),
        ("/nowhere/mine.py:f", "there is no file /nowhere/mine.py"),
        ("no_such_module:f", "No module named 'no_such_module'"),
        ("os.path:gone", "has no attribute 'gone'"),
    ],
)
def test_what_is_missing_is_said(name: str, words: str) -> None:
    with pytest.raises(FunctionError, match=words):
        find(name)
