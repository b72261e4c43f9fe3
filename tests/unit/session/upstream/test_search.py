"""What the search in files answers, and what it does not wait for; with the real ripgrep."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsportal.session.upstream import search
from dsportal.session.upstream.search import BoundedSearch


def found(folder: Path, **asked: Any) -> dict[str, Any]:
    engine = BoundedSearch(SimpleNamespace(root_dir=str(folder)))
    answer: dict[str, Any] = asyncio.run(engine.search("rate", **asked))
    return answer


def test_what_is_text_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the rate\n")
    (tmp_path / "b.txt").write_bytes(b"one rate\n\xff\xfe rate\n")
    matches = {one["path"]: one["matches"] for one in found(tmp_path)["matches"]}
    assert [one["line"] for one in matches["a.txt"]] == ["the rate\n"]
    # Of what is not UTF-8 the rest counts.
    assert [one["line"] for one in matches["b.txt"]] == ["one rate\n"]


def test_nothing_is_found_and_a_mistake_is_said(tmp_path: Path) -> None:
    assert found(tmp_path) == {"matches": []}
    (tmp_path / "a.txt").write_text("nothing of it\n")
    assert found(tmp_path) == {"matches": []}
    engine = BoundedSearch(SimpleNamespace(root_dir=str(tmp_path)))
    answer = asyncio.run(engine.search("(", use_regex=True))
    assert (answer["code"], "unclosed group" in answer["message"]) == (2, True)


def test_an_answer_without_an_end_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        (tmp_path / f"{number}.txt").write_text("the rate\n" * 100)
    monkeypatch.setattr(search, "MOST_BYTES", 100_000)
    matches = found(tmp_path)["matches"]
    assert 0 < len(matches) < 200
    assert len(json.dumps(matches)) < 500_000


def test_a_search_without_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "rg").write_text("#!/bin/sh\nexec sleep 60\n")
    (programs / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(search, "SECONDS", 0.2)
    answer = found(tmp_path)
    assert (answer["code"], "took more than 0.2 s" in answer["message"]) == (2, True)
