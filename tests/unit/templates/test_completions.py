"""OpenAI's completions: what is read of a request, refused by name, and answered."""

from typing import Any

import completions
import pytest
from completions import RequestError, Sampling, WrittenText, until_stop


def test_a_request_has_openais_defaults() -> None:
    asked = completions.text_request({"model": "any", "prompt": "One"})
    assert asked.prompts == ("One",)
    assert asked.sampling == Sampling(max_tokens=16, temperature=1.0, top_p=1.0, seed=None, stop=())


def test_a_request_says_how_text_is_written() -> None:
    sampling = {"max_tokens": 9, "temperature": 0, "top_p": 0.5, "seed": 3, "stop": "\n"}
    asked = completions.text_request({"prompt": ["One", "Two"], "n": 1, "echo": False, **sampling})
    assert asked.prompts == ("One", "Two")
    assert asked.sampling == Sampling(9, 0.0, 0.5, 3, ("\n",))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "must be an object"),
        ({}, "prompt must be a text"),
        ({"prompt": ""}, "none of them empty"),
        ({"prompt": []}, "0 texts"),
        ({"prompt": ["x"] * 65}, "1 to 64"),
        ({"prompt": [1, 2]}, "prompt must be"),
        ({"prompt": "x", "n": 2}, "n is not served here"),
        ({"prompt": "x", "stream": True}, "stream is not served here"),
        ({"prompt": "x", "max_token": 2}, "max_token is not served here; prompt, max_tokens"),
        ({"prompt": "x", "max_tokens": 0}, "is 0; it must be a whole number, 1 to 4096"),
        ({"prompt": "x", "max_tokens": True}, "max_tokens is True"),
        (
            {"prompt": "x", "temperature": "0"},
            "is '0'; it must be a number from 0 to 2",
        ),
        ({"prompt": "x", "temperature": float("nan")}, "temperature is nan"),
        ({"prompt": "x", "top_p": 0}, "top_p is 0"),
        ({"prompt": "x", "stop": [""]}, "stop must be"),
    ],
)
def test_what_cannot_be_answered_is_refused(body: Any, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        completions.text_request(body)


@pytest.mark.parametrize(
    "messages",
    [None, [], ["x"], [{"role": "user"}], [{"role": "user", "content": [{"type": "image_url"}]}]],
)
def test_a_chat_has_messages_of_text(messages: Any) -> None:
    with pytest.raises(RequestError, match="messages must be"):
        completions.chat_request({"messages": messages})


def test_a_chat_may_use_the_newer_name_of_its_length() -> None:
    messages = [{"role": "user", "content": "One"}]
    asked = completions.chat_request({"messages": messages, "max_completion_tokens": 7})
    assert (asked.messages, asked.sampling.max_tokens) == (tuple(messages), 7)


def test_answers_are_shaped_as_clients_read_them() -> None:
    written = [WrittenText("a", 2, 3, is_finished=True), WrittenText("b", 4, 5, is_finished=False)]
    answer = completions.text_answer("run/model", "cmpl-1", 1000, written)
    assert [(one["text"], one["finish_reason"]) for one in answer["choices"]] == [
        ("a", "stop"),
        ("b", "length"),
    ]
    assert answer["usage"] == {"prompt_tokens": 6, "completion_tokens": 8, "total_tokens": 14}
    chat = completions.chat_answer("run/model", "chatcmpl-1", 1000, written[0])
    assert chat["choices"][0]["message"] == {"role": "assistant", "content": "a"}
    assert (answer["object"], chat["object"]) == ("text_completion", "chat.completion")


@pytest.mark.parametrize(
    ("stop", "left"),
    [((), "one two three"), (("two", "ne"), "o"), (("four",), "one two three")],
)
def test_a_text_ends_before_the_first_stop(stop: tuple[str, ...], left: str) -> None:
    assert until_stop("one two three", stop) == (left, left != "one two three")
