"""Which conversations a file of JSON Lines has, and what is said of a wrong one."""

import json
from pathlib import Path

import animals
import conversations
import pytest
from texts import TextError, texts

PAIR = {"prompt": "Which letter comes after k?", "answer": "l"}
CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "k?"},
        {"role": "assistant", "content": "l"},
    ]
}


def written(file: Path, *records: object) -> str:
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def test_both_forms_are_read_also_side_by_side(tmp_path: Path) -> None:
    data = written(tmp_path / "some.jsonl", PAIR, "", CHAT)
    pair, chat = conversations.read(conversations.files_of(data))
    assert pair.messages == [
        {"role": "user", "content": PAIR["prompt"]},
        {"role": "assistant", "content": PAIR["answer"]},
    ]
    assert chat.messages == CHAT["messages"]
    assert chat.place == f"{data}, line 3"


def test_a_separator_in_a_text_ends_no_line(tmp_path: Path) -> None:
    record = json.dumps({"prompt": "a\u2028b", "answer": "c"}, ensure_ascii=False)
    (found,) = conversations.read(conversations.files_of(written(tmp_path / "a.jsonl", record)))
    assert found.turns[0].content == "a\u2028b"


def test_texts_are_no_conversations(tmp_path: Path) -> None:
    data = written(tmp_path / "texts.jsonl", {"text": "one"}, {"text": "two"})
    assert conversations.files_of(data) == []
    assert texts(data) == ["one", "two"]
    (tmp_path / "README.md").write_text("What is here.")
    assert conversations.files_of(str(tmp_path)) == []


def test_a_folder_has_either(tmp_path: Path) -> None:
    first = written(tmp_path / "a.jsonl", PAIR)
    (tmp_path / "README.md").write_text("What is here.")
    assert conversations.files_of(str(tmp_path)) == [Path(first)]
    second = written(tmp_path / "b.jsonl", {"text": "one"})
    with pytest.raises(TextError, match=f"{second} has texts, {first} has none"):
        conversations.files_of(str(tmp_path))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"question": "k?", "reply": "l"}, 'This one has "question", "reply"'),
        ({"text": "one"}, 'This one has "text"'),
        ("{not json", "this is not JSON"),
        ("[1, 2]", "not a JSON object"),
        ({"prompt": "k?", "answer": None}, "what the assistant says is None"),
        ({"messages": "k?"}, '"messages" is not a list'),
        ({"messages": [{"role": "user"}]}, 'a "role" and a "content"'),
        ({"messages": [{"role": "poet", "content": "k?"}]}, "the role is 'poet'"),
        ({"messages": [{"role": "user", "content": "k?"}]}, "the last message is the user's"),
    ],
)
def test_a_wrong_record_is_named_with_file_and_line(
    record: object, words: str, tmp_path: Path
) -> None:
    data = written(tmp_path / "some.jsonl", PAIR, record)
    with pytest.raises(TextError) as raised:
        conversations.read(conversations.files_of(data))
    said = str(raised.value)
    assert said.startswith(f"{data}, line 2: ")
    assert words in said
    assert "\n" not in said


def test_a_wrong_text_is_named_with_file_and_line(tmp_path: Path) -> None:
    data = written(tmp_path / "texts.jsonl", {"text": "one"}, {"texts": "two"})
    with pytest.raises(TextError, match="line 2: there is no field"):
        texts(data)


@pytest.mark.parametrize("name", ["some.txt", "some.jsonl"])
def test_a_text_that_is_not_utf_8_is_named_and_not_learnt_with_gaps(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes('{"text": "Grüße"}'.encode("latin-1"))
    with pytest.raises(TextError, match=f"{file} is not UTF-8 text .byte 13."):
        texts(str(tmp_path))
    # As Windows' programs write it.
    file.write_text('{"text": "Grüße"}', encoding="utf-8-sig")
    assert texts(str(tmp_path)) == ["Grüße" if file.suffix == ".jsonl" else '{"text": "Grüße"}']


def test_the_made_up_ones_follow_from_the_seed() -> None:
    first, again, other = (animals.conversations(seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({one.turns[-2:] for one in first}) == len(first)
    assert {len(one.turns) for one in first} == {2, 4}


def test_copies_that_jupyter_keeps_are_not_read(tmp_path: Path) -> None:
    hidden = tmp_path / ".ipynb_checkpoints"
    for folder in (hidden, tmp_path / "a-folder.md"):
        folder.mkdir()
    for place, word in ((tmp_path, "now"), (hidden, "before")):
        written(place / "a.txt", word)
    assert [text.strip() for text in texts(str(tmp_path))] == ["now"]
    for place in (tmp_path, hidden):
        written(place / "own.jsonl", PAIR)
    assert conversations.files_of(str(tmp_path)) == [tmp_path / "own.jsonl"]
