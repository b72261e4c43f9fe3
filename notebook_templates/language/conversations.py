"""Conversations to learn from: JSON Lines in which somebody asks and the model is to answer.

A line is either of::

    {"prompt": "Which letter comes after k?", "answer": "l"}
    {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texts import TextError, files_below, objects_of

ROLES = ("system", "user", "assistant")
ANSWERS = "assistant"
_FORMS = '"prompt" and "answer", or "messages"; or "text", and then in every line'


@dataclass(frozen=True)
class Turn:
    """What one of them says."""

    role: str
    content: str


@dataclass(frozen=True)
class ChatRecord:
    """A record: turns of which the last is an answer."""

    turns: tuple[Turn, ...]
    place: str
    """Its file and line, for messages."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The turns as chat templates take them."""
        return [vars(turn) for turn in self.turns]

    @property
    def exchanges(self) -> set[tuple[Turn, ...]]:
        """Each answer with what is said right before it."""
        places = [number for number, turn in enumerate(self.turns) if turn.role == ANSWERS]
        return {self.turns[max(0, number - 1) : number + 1] for number in places}


def files_of(data: str) -> list[Path]:
    """Return the ``.jsonl`` files with conversations, if that is what the file or folder has.

    The first line of each file says what is in it: a field ``text`` makes it one of texts. Raises
    `TextError` where a folder has files of both sorts.
    """
    place = Path(data).expanduser()
    files = [place] if place.is_file() else files_below(place)
    files = [file for file in files if file.suffix == ".jsonl"]
    first = [(file, next(objects_of(file), None)) for file in files]
    of_texts = [file for file, found in first if found and "text" in found[1]]
    others = [file for file, found in first if found and "text" not in found[1]]
    if of_texts and others:
        raise TextError(
            f"{of_texts[0]} has texts, {others[0]} has none: train on either texts or conversations"
        )
    return others


def read(files: list[Path]) -> list[ChatRecord]:
    """Read files of conversations; raises `TextError` that names the first wrong line."""
    return [
        ChatRecord(_turns(record, f"{file}, line {number}"), f"{file}, line {number}")
        for file in files
        for number, record in objects_of(file)
    ]


def _turns(record: Mapping[str, Any], place: str) -> tuple[Turn, ...]:
    if "messages" in record:
        messages = record["messages"]
    elif "prompt" in record and "answer" in record:
        messages = [
            {"role": "user", "content": record["prompt"]},
            {"role": ANSWERS, "content": record["answer"]},
        ]
    else:
        fields = ", ".join(f'"{name}"' for name in record) or "none"
        raise TextError(f"{place}: a record has {_FORMS}. This one has {fields}")
    turns = turns_of(messages, place)
    if turns[-1].role != ANSWERS:
        raise TextError(f"{place}: the last message is the {turns[-1].role}'s, not an answer")
    return turns


def turns_of(messages: object, place: str) -> tuple[Turn, ...]:
    """Read the messages of a conversation; raises `TextError`."""
    if not isinstance(messages, list) or not messages:
        raise TextError(f'{place}: "messages" is not a list of messages')
    return tuple(_turn(message, place) for message in messages)


def _turn(message: object, place: str) -> Turn:
    if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
        raise TextError(f'{place}: a message has a "role" and a "content"; this is {message!r}')
    role, content = message["role"], message["content"]
    if role not in ROLES:
        raise TextError(f"{place}: the role is {role!r}; it may be {', '.join(ROLES)}")
    if not isinstance(content, str) or not content.strip():
        raise TextError(f"{place}: what the {role} says is {content!r}, which is no text")
    return Turn(role, content)
