"""Answers have the form that clients of OpenAI's API read."""

import json
from typing import Any

from answers import DONE, ChatForm, ModelAnswer, TextForm
from completions import WrittenText

TEXTS = [WrittenText("a", 2, 3, is_finished=True), WrittenText("b", 4, 5, is_finished=False)]
USAGE = {"prompt_tokens": 6, "completion_tokens": 8, "total_tokens": 14}


def content_of(event: bytes) -> Any:
    assert event.startswith(b"data: ")
    assert event.endswith(b"\n\n")
    return json.loads(event[len(b"data: ") :])


def test_whole_answers_are_shaped_as_clients_read_them() -> None:
    answer = ModelAnswer(TextForm(), "cmpl-1", 1000, "run/model").whole(TEXTS)
    assert [(one["text"], one["finish_reason"]) for one in answer["choices"]] == [
        ("a", "stop"),
        ("b", "length"),
    ]
    assert answer["usage"] == USAGE
    chat = ModelAnswer(ChatForm(), "chatcmpl-1", 1000, "run/model").whole(TEXTS[:1])
    assert chat["choices"][0]["message"] == {"role": "assistant", "content": "a"}
    assert (answer["object"], chat["object"]) == ("text_completion", "chat.completion")


def test_parts_of_a_text_are_events() -> None:
    answer = ModelAnswer(TextForm(), "cmpl-1", 1000, "run/model")
    assert answer.first(0) == b""
    part, end = content_of(answer.part(1, "a\nb")), content_of(answer.end(1, TEXTS[1]))
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1000, "model": "run/model"}
    choice = {"index": 1, "text": "a\nb", "logprobs": None, "finish_reason": None}
    assert part == {**head, "choices": [choice]}
    assert end == {**head, "choices": [{**choice, "text": "", "finish_reason": "length"}]}
    assert content_of(answer.usage(TEXTS)) == {**head, "choices": [], "usage": USAGE}


def test_parts_of_a_message_are_what_is_added_to_it() -> None:
    answer = ModelAnswer(ChatForm(), "chatcmpl-1", 1000, "run/model")
    events = [answer.first(0), answer.part(0, "a"), answer.end(0, TEXTS[0])]
    found = [content_of(one) for one in events]
    assert {one["object"] for one in found} == {"chat.completion.chunk"}
    assert [one["choices"][0]["delta"] for one in found] == [
        {"role": "assistant", "content": ""},
        {"content": "a"},
        {},
    ]
    assert [one["choices"][0]["finish_reason"] for one in found] == [None, None, "stop"]
    assert DONE == b"data: [DONE]\n\n"
