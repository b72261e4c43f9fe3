"""Conversations as tokens, in the form that the model knows: its tokenizer's chat template.

A tokenizer without one, as those of models that were never taught to answer, gets `PLAIN`::

    User: Which letter comes after k?
    Assistant: After k comes l.<end of text>

Only answers are learnt, with the token that ends them: the labels of all else are -100, which
PyTorch's cross-entropy leaves out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jinja2
import transformers
from conversations import ANSWERS, ChatRecord, Turn
from texts import TextError

Tokenizer = transformers.PreTrainedTokenizerBase
IGNORED = -100
PLAIN = (
    "{% for message in messages %}"
    "{{ '' if loop.first else '\\n' }}{{ message['role'] | capitalize }}: {{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '\\nAssistant:' }}{% endif %}"
)


@dataclass(frozen=True)
class LabelledRow:
    """The tokens of a record, which end with the end of text, and as many labels."""

    tokens: list[int]
    labels: list[int]


class Chat:
    """A tokenizer that writes conversations."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Give it the plain form, where it has no chat template; raises `TextError`."""
        if not tokenizer.is_fast or tokenizer.eos_token_id is None:
            raise TextError(
                "To train on conversations, the model needs a tokenizer.json, and its tokenizer an "
                "end-of-text token"
            )
        self.is_plain = tokenizer.chat_template is None
        self._tokenizer = tokenizer
        if self.is_plain:
            # Some models expect each text to begin with a token, which a template writes itself.
            begins = tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id]
            tokenizer.chat_template = f"{'{{ bos_token }}' if begins else ''}{PLAIN}"

    def asked(self, turns: Sequence[Turn], place: str) -> list[int]:
        """Return the tokens after which the model is to answer what was said so far."""
        return self._tokens(self._text(turns, place, asks=True))

    def question(self, conversation: ChatRecord) -> list[int]:
        """Return the tokens after which the model is to give the last answer."""
        return self.asked(conversation.turns[:-1], conversation.place)

    def ends(self) -> set[int]:
        """Return the tokens that end an answer: the end of text, and the template's end of a turn.

        The latter is the special token that the template writes behind an answer.
        """
        turns = (Turn("user", "0"), Turn(ANSWERS, "0"))
        try:
            behind = self._text(turns, "").rpartition("0")[2]
        except TextError:  # such as one that expects more than a question and its answer
            behind = ""
        known = self._tokenizer.added_tokens_decoder
        special = [one for one in self._tokens(behind) if one in known and known[one].special]
        return {self._tokenizer.eos_token_id, *special[:1]}

    def rows(self, conversation: ChatRecord) -> list[LabelledRow]:
        """Return a conversation as one row.

        Some templates write an answer otherwise once others follow, such as without what the model
        thought; then each answer is a row of its own, with all that was said before it.
        """
        turns, place = conversation.turns, conversation.place
        places = [number for number, turn in enumerate(turns) if turn.role == ANSWERS]
        asked = [self._text(turns[:number], place, asks=True) for number in places]
        answered = [self._text(turns[: number + 1], place) for number in places]
        for before, after in zip(asked, answered, strict=True):
            if not after.startswith(before):
                raise TextError(
                    f"{place}: the model's chat template asks with {before[-40:]!r}, and does not "
                    "begin an answer with it"
                )
        spans = [(len(before), len(after)) for before, after in zip(asked, answered, strict=True)]
        whole = answered[-1]
        if all(whole.startswith(text) for text in (*asked, *answered)):
            return [self._row(whole, spans)]
        return [self._row(text, [span]) for text, span in zip(answered, spans, strict=True)]

    def _text(self, turns: Sequence[Turn], place: str, asks: bool = False) -> str:
        messages = [vars(turn) for turn in turns]
        try:
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=asks
            )
        except jinja2.TemplateError as error:
            raise TextError(f"{place}: the model's chat template refuses it: {error}") from error
        return str(text)

    def _tokens(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _row(self, text: str, answers: list[tuple[int, int]]) -> LabelledRow:
        """Label the answers, which are given by the places of their first and last characters."""
        found = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        tokens, end = found["input_ids"], self._tokenizer.eos_token_id
        begins = [begin for begin, _ in found["offset_mapping"]]
        labels, last = [IGNORED] * len(tokens), len(tokens)
        for first, behind in answers:
            learnt = [number for number, one in enumerate(begins) if first <= one < behind]
            ends = [number for number in learnt if tokens[number] == end]
            # Not what a template writes behind the end of an answer, such as a new line.
            last = ends[-1] + 1 if ends else len(tokens)
            for number in learnt:
                if number < last:
                    labels[number] = tokens[number]
        if not tokens[:last] or tokens[last - 1] != end:
            return LabelledRow([*tokens, end], [*labels, end])
        return LabelledRow(tokens[:last], labels[:last])
