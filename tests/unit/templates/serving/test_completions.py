"""OpenAI's completions: what is read of a request, refused by name, and answered."""

from typing import Any

import completions
import pytest
from completions import Delivery, ModelNotFoundError, RequestError, Sampling, until_stop


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
        ({}, "prompt must be a non-empty string"),
        ({"prompt": ""}, "must be a non-empty string"),
        ({"prompt": []}, "0 strings"),
        ({"prompt": ["x"] * 65}, "1 to 64"),
        ({"prompt": [1, 2]}, "prompt must be"),
        ({"prompt": "half a \ud83d"}, "half a UTF-16 character"),
        ({"prompt": ["x", "half a \ud83d"]}, "half a UTF-16 character"),
        ({"prompt": "x", "n": 2}, "n is not served here"),
        ({"prompt": "x", "stream": "yes"}, "stream is 'yes'; it must be true or false"),
        ({"prompt": "x", "stream_options": {}}, "where stream is true"),
        ({"prompt": "x", "stream": True, "stream_options": {"other": 1}}, "include_usage"),
        ({"prompt": "x", "model": 1}, "model must be a string"),
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
    [
        None,
        [],
        ["x"],
        [{"role": "user"}],
        [{"role": "user", "content": [{"type": "image_url"}]}],
        [{"role": "user", "content": "\udc4d"}],
    ],
)
def test_a_chat_has_messages_of_text(messages: Any) -> None:
    with pytest.raises(RequestError, match="messages must be"):
        completions.chat_request({"messages": messages})


def test_a_chat_may_use_the_newer_name_of_its_length() -> None:
    messages = [{"role": "user", "content": "One"}]
    asked = completions.chat_request({"messages": messages, "max_completion_tokens": 7})
    assert (asked.messages, asked.sampling.max_tokens) == (tuple(messages), 7)


def test_an_answer_is_sent_whole_or_in_parts() -> None:
    whole = completions.text_request({"prompt": "x", "stream": False})
    assert whole.delivery == Delivery()
    parts = {"stream": True, "stream_options": {"include_usage": True}, "model": "run/model"}
    asked = completions.text_request({"prompt": "x", **parts})
    assert asked.delivery == Delivery("run/model", is_streamed=True, has_usage=True)


def test_another_model_than_the_one_that_is_served_is_not_there() -> None:
    Delivery().check("run/model")
    Delivery("run/model").check("run/model")
    with pytest.raises(ModelNotFoundError, match="'gpt' is not loaded; 'run/model' is"):
        Delivery("gpt").check("run/model")


def test_an_answer_in_a_conversation_may_be_as_long_as_the_model_can() -> None:
    messages = [{"role": "user", "content": "One"}]
    assert completions.chat_request({"messages": messages}).sampling.max_tokens is None


@pytest.mark.parametrize(
    ("stop", "left"),
    [((), "one two three"), (("two", "ne"), "o"), (("four",), "one two three")],
)
def test_a_text_ends_before_the_first_stop(stop: tuple[str, ...], left: str) -> None:
    assert until_stop("one two three", stop) == (left, left != "one two three")


@pytest.mark.parametrize(("temperature", "is_drawn"), [(0, False), (1e-40, False), (0.01, True)])
def test_a_temperature_near_nothing_is_the_likeliest_token(
    temperature: float, is_drawn: bool
) -> None:
    asked = completions.text_request({"prompt": "x", "temperature": temperature})
    assert asked.sampling.is_drawn is is_drawn
