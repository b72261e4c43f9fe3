"""OpenAI's completions, as far as they are served: what a request asks for (answers.py answers).

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
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "logit_bias": (None, {}),
    "suffix": (None, ""),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "tools": (None, []),
}
_IGNORED = ("user",)
# Of fp32, scores that are divided by less can be infinite.
_LEAST_TEMPERATURE = 1e-5
_SAMPLING = ("temperature", "top_p", "seed", "stop")
_DELIVERY = ("model", "stream", "stream_options")


class RequestError(ValueError):
    """A request cannot be answered; the message is for whoever sent it."""


class ModelNotFoundError(RequestError):
    """Another model is asked for than the one that is served."""


@dataclass(frozen=True)
class Sampling:
    """How text is written: requests with the same can be computed together."""

    max_tokens: int | None = _NEW_TOKENS
    """``None``: as many as the model can take."""
    temperature: float = 1.0
    """0: always the likeliest token."""
    top_p: float = 1.0
    """Tokens are drawn from the likeliest, which have this probability together."""
    seed: int | None = None
    stop: tuple[str, ...] = ()
    """Texts that end the answer, and are not part of it."""

    @property
    def is_drawn(self) -> bool:
        """Whether tokens are drawn; a temperature near 0 would leave none a probability."""
        return self.temperature >= _LEAST_TEMPERATURE


@dataclass(frozen=True)
class Delivery:
    """By which model a request is to be answered, and how the answer is sent."""

    model: str | None = None
    is_streamed: bool = False
    """In parts, as they are written."""
    has_usage: bool = False
    """Whether the last part says how many tokens there were."""

    def check(self, served: str) -> None:
        """Raise `ModelNotFoundError` where the model that is served is another one."""
        if self.model is not None and self.model != served:
            raise ModelNotFoundError(f"the model {self.model!r} is not loaded; {served!r} is")


@dataclass(frozen=True)
class TextRequest:
    """Texts to continue."""

    prompts: tuple[str, ...]
    sampling: Sampling
    delivery: Delivery


@dataclass(frozen=True)
class ChatRequest:
    """A conversation to continue."""

    messages: tuple[Mapping[str, str], ...]
    sampling: Sampling
    delivery: Delivery


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
    given = _checked(body, ("prompt", "max_tokens"))
    prompt = given.get("prompt")
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if not isinstance(prompts, list) or not all(_is_text(one) and one for one in prompts):
        raise RequestError(
            "prompt must be a non-empty string or a list of them, without half a UTF-16 character"
        )
    if not 1 <= len(prompts) <= MOST_PROMPTS:
        raise RequestError(f"prompt has {len(prompts)} strings; it may have 1 to {MOST_PROMPTS}")
    sampling = _sampling(given, "max_tokens", _NEW_TOKENS)
    return TextRequest(tuple(prompts), sampling, _delivery(given))


def chat_request(body: object) -> ChatRequest:
    """Read the body of ``/v1/chat/completions``; raises `RequestError`."""
    given = _checked(body, ("messages", "max_tokens", "max_completion_tokens"))
    messages = given.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise RequestError(
            "messages must be a list of objects with the strings role and content, without half a "
            "UTF-16 character"
        )
    length = "max_completion_tokens" if "max_completion_tokens" in given else "max_tokens"
    return ChatRequest(tuple(messages), _sampling(given, length, None), _delivery(given))


def until_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """Cut a text before the first of ``stop``; say whether there was one."""
    places = [place for word in stop if (place := text.find(word)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _delivery(given: Mapping[str, Any]) -> Delivery:
    model, stream, options = (given.get(name) for name in _DELIVERY)
    if not isinstance(model, str | None):
        raise RequestError("model must be a string: GET /v1/models has it")
    if not isinstance(stream, bool | None):
        raise RequestError(f"stream is {stream!r}; it must be true or false")
    if options is None:
        return Delivery(model, bool(stream))
    if not stream or not isinstance(options, dict) or options.keys() - {"include_usage"}:
        raise RequestError("stream_options may have include_usage, where stream is true")
    return Delivery(model, is_streamed=True, has_usage=bool(options.get("include_usage")))


def _checked(body: object, named: Sequence[str]) -> dict[str, Any]:
    served = (*named, *_SAMPLING, *_DELIVERY)
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


def _sampling(given: Mapping[str, Any], length: str, tokens: int | None) -> Sampling:
    stop = given.get("stop") or []
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(one, str) and one for one in stops):
        raise RequestError("stop must be a string or a list of strings")
    return Sampling(
        max_tokens=_whole(given, length, tokens, 1, MOST_TOKENS),
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
        and all(map(_is_text, one.values()))
    )


def _is_text(one: object) -> bool:
    """Say whether this is text: JSON can have half of a UTF-16 character, which no tokenizer takes.

    Clients leave one where they cut a text within an emoji, as JavaScript's ``slice`` can.
    """
    return isinstance(one, str) and not any("\ud800" <= letter <= "\udfff" for letter in one)
