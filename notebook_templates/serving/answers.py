"""Answers in OpenAI's form: whole, or as events while they are written.

https://platform.openai.com/docs/api-reference/completions, .../chat and .../chat-streaming. Events
are HTML's server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from completions import WrittenText

DONE = b"data: [DONE]\n\n"
"""The last event."""


class AnswerForm(Protocol):
    """How the answers of a path are written."""

    prefix: str
    """Of an answer's number."""
    whole: str
    """What a whole answer is called."""
    chunk: str
    """What a part of one is called."""

    def choice(self, text: WrittenText) -> dict[str, Any]:
        """Return a whole text."""

    def first(self) -> dict[str, Any] | None:
        """Return what is sent before the first part, if anything is."""

    def part(self, text: str) -> dict[str, Any]:
        """Return a part of a text; nothing of one with the last event."""


class TextForm:
    """``/v1/completions``."""

    prefix, whole, chunk = "cmpl", "text_completion", "text_completion"

    def choice(self, text: WrittenText) -> dict[str, Any]:
        """Return a whole text."""
        return {"text": text.text}

    def first(self) -> None:
        """Nothing is sent before the first part."""

    def part(self, text: str) -> dict[str, Any]:
        """Return a part of a text."""
        return {"text": text}


class ChatForm:
    """``/v1/chat/completions``."""

    prefix, whole, chunk = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def choice(self, text: WrittenText) -> dict[str, Any]:
        """Return a whole message."""
        return {"message": {"role": "assistant", "content": text.text}}

    def first(self) -> dict[str, Any]:
        """Say whose message it is."""
        return {"delta": {"role": "assistant", "content": ""}}

    def part(self, text: str) -> dict[str, Any]:
        """Return a part of a message."""
        return {"delta": {"content": text} if text else {}}


@dataclass(frozen=True)
class ModelAnswer:
    """What all parts of an answer have in common."""

    form: AnswerForm
    number: str
    created: int
    """In seconds since 1970."""
    model: str

    def whole(self, texts: Sequence[WrittenText]) -> dict[str, Any]:
        """Return all of it."""
        choices = [
            _choice(index, self.form.choice(one), _reason(one)) for index, one in enumerate(texts)
        ]
        return self._of(self.form.whole, choices) | {"usage": _usage(texts)}

    def first(self, index: int) -> bytes:
        """Return the event before a text's first part, which may be none."""
        first = self.form.first()
        return b"" if first is None else self._event(_choice(index, first, None))

    def part(self, index: int, text: str) -> bytes:
        """Return the event with the next part of a text."""
        return self._event(_choice(index, self.form.part(text), None))

    def end(self, index: int, text: WrittenText) -> bytes:
        """Return the event that says why a text has come to its end."""
        return self._event(_choice(index, self.form.part(""), _reason(text)))

    def usage(self, texts: Sequence[WrittenText]) -> bytes:
        """Return the event that says how many tokens there were."""
        return event(self._of(self.form.chunk, []) | {"usage": _usage(texts)})

    def _event(self, choice: dict[str, Any]) -> bytes:
        return event(self._of(self.form.chunk, [choice]))

    def _of(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.number,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


def event(content: Mapping[str, Any]) -> bytes:
    """Write an event."""
    return f"data: {json.dumps(content)}\n\n".encode()


def refusal(message: str, code: str | None = None) -> dict[str, Any]:
    """Say what is wrong as clients of OpenAI's API expect it."""
    told = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return {"error": told}


def _choice(index: int, content: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": index, **content, "logprobs": None, "finish_reason": reason}


def _reason(text: WrittenText) -> str:
    return "stop" if text.is_finished else "length"


def _usage(texts: Sequence[WrittenText]) -> dict[str, int]:
    prompt, written = sum(one.prompt_tokens for one in texts), sum(one.tokens for one in texts)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }
