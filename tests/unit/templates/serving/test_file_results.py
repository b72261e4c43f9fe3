"""Inference over many files: each is done once, whoever does it and however often it is begun."""

import json
from pathlib import Path

import file_results
import pytest
from file_results import DataFolderError, FileResults, groups, part_of, shard, with_new

FILES = [f"{number}.png" for number in range(10)]


@pytest.mark.parametrize("tasks", [1, 3, 16])
def test_the_tasks_divide_what_is_left(tasks: int) -> None:
    done = {"2.png", "7.png"}
    shards = [shard(FILES, done, task, tasks) for task in range(tasks)]
    indices = [index for one in shards for index in one]
    assert sorted(indices) == [0, 1, 3, 4, 5, 6, 8, 9]


def test_no_two_parts_have_one_name_and_no_file_is_done_twice() -> None:
    done: list[str] = []
    parts: list[str] = []
    # Begun again and again by other numbers of tasks, each stopped after its first group.
    while len(set(done)) < len(FILES):
        before, tasks = set(done), 1 + len(parts) % 3
        for task in range(tasks):
            for group in list(groups(shard(FILES, before, task, tasks), 2))[:1]:
                parts.append(part_of(group))
                done += [FILES[index] for index in group]
    assert sorted(done) == FILES
    assert len(set(parts)) == len(parts) > 4


def test_new_files_leave_the_others_in_their_places() -> None:
    assert with_new(["b", "d"], ["a", "b", "c", "d"]) == ["b", "d", "a", "c"]


def test_files_are_listed_once_and_new_ones_behind(tmp_path: Path) -> None:
    data, run = tmp_path / "data", tmp_path / "run"
    for name in ("b.png", "sub/c.JPG", ".hidden/d.png", "notes.txt"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    assert file_results.listed(run) == []
    assert file_results.list_files(run, data, "image") == ["b.png", "sub/c.JPG"]
    (data / "a.png").touch()
    assert file_results.list_files(run, data, "image") == ["b.png", "sub/c.JPG", "a.png"]
    assert file_results.listed(run) == ["b.png", "sub/c.JPG", "a.png"]
    assert file_results.files_below(data, "text") == ["notes.txt"]
    (data / "notes.txt").unlink()
    with pytest.raises(DataFolderError, match=r"no files that end in \.txt"):
        file_results.files_below(data, "text")


def test_results_are_read_as_parts_come(tmp_path: Path) -> None:
    results = FileResults(tmp_path)
    assert results.done() == set()
    (tmp_path / "parts").mkdir()
    for part, names in (("00000001.jsonl", ["b"]), ("00000000.jsonl", ["a", "c"])):
        lines = [json.dumps({"file": name}) + "\n" for name in names]
        (tmp_path / "parts" / part).write_text("".join(lines))
        # What is written now is not there yet.
        (tmp_path / "parts" / f".{part}.7").write_text('{"fil')
    assert [line["file"] for line in results.lines()] == ["a", "c", "b"]
    assert results.done() == {"a", "b", "c"}
