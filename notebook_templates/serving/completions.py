"""OpenAI's completions, as far as they are served: what a request asks for, and its answer.

https://platform.openai.com/docs/api-reference/completions and .../chat. What is not served is
refused by name: a client should not believe that it got what it asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_TOKENS = 4096  # that may be asked for at once
MOST_PROMPTS = 64
_NEW_TOKENS = 16  # OpenAI's own default
# Keys with the values that change nothing; any other value asks for what is not served.
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (None, 1),
    "best_of": (None, 1),
    "echo": (None, False),
    "stream": (None, False),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "logit_bias": (None, {}),
    "suffix": (None, ""),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "stream_options": (None,),
    "tools": (None, []),
}
_IGNORED = ("model", "user")
_SAMPLING = ("temperature", "top_p", "seed", "stop")


class RequestError(ValueError):
    """A request cannot be answered; the message is for whoever sent it."""


@dataclass(frozen=True)
class Sampling:
    """How text is written: requests with the same can be computed together."""

    max_tokens: int = _NEW_TOKENS
    temperature: float = 1.0
    """0: always the likeliest token."""
    top_p: float = 1.0
    """Tokens are drawn from the likeliest, which have this probability together."""
    seed: int | None = None
    stop: tuple[str, ...] = ()
    """Texts that end the answer, and are not part of it."""


@dataclass(frozen=True)
class Prompt:
    """A text to continue."""

    text: str
    is_whole: bool = False
    """Whether it has all special tokens, as a conversation that a template has written."""


@dataclass(frozen=True)
class TextRequest:
    """Texts to continue."""

    prompts: tuple[str, ...]
    sampling: Sampling


@dataclass(frozen=True)
class ChatRequest:
    """A conversation to continue."""

    messages: tuple[Mapping[str, str], ...]
    sampling: Sampling


@dataclass(frozen=True)
class WrittenText:
    """What a model has written."""

    text: str
    prompt_tokens: int
    tokens: int
    is_finished: bool
    """Whether it has come to an end by itself, and not to ``max_tokens``."""


def text_request(body: object) -> TextRequest:
    """Read the body of ``/v1/completions``; raises `RequestError`."""
    given = _checked(body, ("prompt", "max_tokens", *_SAMPLING))
    prompt = given.get("prompt")
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if not isinstance(prompts, list) or not all(isinstance(one, str) and one for one in prompts):
        raise RequestError("prompt must be a text, or a list of texts, none of them empty")
    if not 1 <= len(prompts) <= MOST_PROMPTS:
        raise RequestError(f"prompt has {len(prompts)} texts; it may have 1 to {MOST_PROMPTS}")
    return TextRequest(tuple(prompts), _sampling(given, "max_tokens"))


def chat_request(body: object) -> ChatRequest:
    """Read the body of ``/v1/chat/completions``; raises `RequestError`."""
    given = _checked(body, ("messages", "max_tokens", "max_completion_tokens", *_SAMPLING))
    messages = given.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise RequestError("messages must be a list of objects with the texts role and content")
    length = "max_completion_tokens" if "max_completion_tokens" in given else "max_tokens"
    return ChatRequest(tuple(messages), _sampling(given, length))


def text_answer(model: str, number: str, created: int, texts: Sequence[WrittenText]) -> Any:
    """Return the answer of ``/v1/completions``."""
    choices = [
        {"index": index, "text": one.text, "logprobs": None, "finish_reason": _reason(one)}
        for index, one in enumerate(texts)
    ]
    return _answer("text_completion", model, number, created, texts, choices)


def chat_answer(model: str, number: str, created: int, text: WrittenText) -> Any:
    """Return the answer of ``/v1/chat/completions``."""
    message = {"role": "assistant", "content": text.text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(text)}
    return _answer("chat.completion", model, number, created, [text], [choice])


def until_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """Cut a text before the first of ``stop``; say whether there was one."""
    places = [place for word in stop if (place := text.find(word)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _answer(
    kind: str, model: str, number: str, created: int, texts: Sequence[WrittenText], choices: Any
) -> Any:
    prompt, written = sum(one.prompt_tokens for one in texts), sum(one.tokens for one in texts)
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }
    return {
        "id": number,
        "object": kind,
        "created": created,
        "model": model,
        "choices": choices,
        "usage": usage,
    }


def _reason(text: WrittenText) -> str:
    return "stop" if text.is_finished else "length"


def _checked(body: object, served: Sequence[str]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise RequestError("the body must be an object of JSON")
    for name, value in body.items():
        if name in served or name in _IGNORED:
            continue
        if name not in _NEUTRAL:
            raise RequestError(f"{name} is not served here; {', '.join(served)} are")
        if value not in _NEUTRAL[name]:
            raise RequestError(f"{name} is not served here: leave it out")
    return body


def _sampling(given: Mapping[str, Any], length: str) -> Sampling:
    stop = given.get("stop") or []
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(one, str) and one for one in stops):
        raise RequestError("stop must be a text or a list of texts")
    return Sampling(
        max_tokens=_whole(given, length, _NEW_TOKENS, 1, MOST_TOKENS) or _NEW_TOKENS,
        temperature=_number(given, "temperature", 1.0, 0.0, 2.0),
        top_p=_number(given, "top_p", 1.0, 0.01, 1.0),
        seed=_whole(given, "seed", None, 0, 2**63 - 1),
        stop=tuple(stops),
    )


def _whole(
    given: Mapping[str, Any], name: str, otherwise: int | None, least: int, most: int
) -> int | None:
    value = given.get(name)
    if value is None:
        return otherwise
    if type(value) is not int or not least <= value <= most:
        raise RequestError(f"{name} is {value!r}; it must be a whole number, {least} to {most}")
    return value


def _number(
    given: Mapping[str, Any], name: str, otherwise: float, least: float, most: float
) -> float:
    value = given.get(name)
    if value is None:
        return otherwise
    if type(value) not in (int, float) or not least <= value <= most:
        raise RequestError(f"{name} is {value!r}; it must be a number from {least:g} to {most:g}")
    return float(value)


def _is_message(one: object) -> bool:
    return (
        isinstance(one, dict)
        and one.keys() == {"role", "content"}
        and all(isinstance(text, str) for text in one.values())
    )
