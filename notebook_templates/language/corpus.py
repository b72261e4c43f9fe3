"""What a training learns from, opened: texts, or conversations with answers.

Either has a part to train on, a part that is held out, and something to let the model write before
and after.
"""

import argparse
import json
from typing import Protocol

import animals
import causal_lm
import chat
import conversations
import numpy as np
import texts
import torch
from causal_lm import Tokenizer
from conversations import ChatRecord
from texts import TextError
from token_dataset import TokenDataset
from torch import nn


class Corpus(Protocol):
    """What finetune.py asks of both."""

    unit: str
    """What rows are, in the plural."""
    train: TokenDataset
    test: TokenDataset

    def words(self, rows: str, count: int) -> list[str]:
        """Say what there is, and how the ``count`` rows of a step come about."""

    def written(self, model: nn.Module, device: torch.device) -> str:
        """Let the model write; the checkpoint keeps what is returned."""

    def summary(self, before: str, after: str) -> dict[str, object]:
        """Return what the summary says of what was written before and after."""


def opened(tokenizer: Tokenizer, s: argparse.Namespace) -> Corpus:
    """Open ``s.data``; raises `TextError` where there is nothing, or a wrong record."""
    if s.data == animals.NAME:
        return Instructions(tokenizer, animals.conversations(s.seed), s)
    if s.data not in (texts.LICENCES, texts.PYTHON):
        files = conversations.files_of(s.data)
        if files:
            return Instructions(tokenizer, conversations.read(files), s)
    return Texts(tokenizer, s)


class Texts:
    """Texts in blocks of one length. The last are held out: blocks of one text are neighbours."""

    unit = "blocks"

    def __init__(self, tokenizer: Tokenizer, s: argparse.Namespace) -> None:
        """Read and divide them."""
        blocks = causal_lm.blocks_of(tokenizer, s.data, s.length)
        held = max(1, round(len(blocks) * s.held_out))
        self.train = TokenDataset.of_blocks(blocks[:-held])
        self.test = TokenDataset.of_blocks(blocks[-held:][: s.held_out_blocks])
        self._tokenizer, self._s = tokenizer, s

    def words(self, rows: str, count: int) -> list[str]:
        """Say what there is, and how the ``count`` blocks of a step come about."""
        train, test, length = len(self.train), len(self.test), self._s.length
        return [
            f"{train:,} blocks of {length} tokens to train on, {test} held out",
            f"{count * length:,} tokens a step = {length} tokens x {rows}",
        ]

    def written(self, model: nn.Module, device: torch.device) -> str:
        """Let the model continue the prompt."""
        prompt, new_tokens = self._s.prompt, self._s.new_tokens
        return causal_lm.continued(model, self._tokenizer, prompt, new_tokens, device)

    def summary(self, before: str, after: str) -> dict[str, object]:
        """Return both texts."""
        return {"generated": [before, after]}


class Instructions:
    """Conversations, of which the answers are learnt; those that are held out are drawn.

    A conversation of more than ``s.length`` tokens is skipped: cut, it would teach answers that end
    in the middle, or have no answer at all. Nor is one trained on in which a question that is held
    out gets the same answer, such as in an earlier turn.
    """

    unit = "conversations"

    def __init__(
        self, tokenizer: Tokenizer, found: list[ChatRecord], s: argparse.Namespace
    ) -> None:
        """Write them in the form that the model knows, and divide them."""
        self._tokenizer, self._s = tokenizer, s
        self._chat = chat.Chat(tokenizer)
        written = [(one, self._chat.rows(one)) for one in found]
        kept = [
            (one, rows) for one, rows in written if all(len(row.tokens) <= s.length for row in rows)
        ]
        self._skipped = len(found) - len(kept)
        if len(kept) < 2:
            raise TextError(
                f"data is {s.data!r}; {len(kept)} of {len(found)} conversations have at most "
                f"{s.length} tokens. Set a greater length, or give more conversations."
            )
        order = np.random.default_rng(s.seed).permutation(len(kept)).tolist()
        held = max(1, round(len(kept) * s.held_out))
        test = [kept[number] for number in order[:held]][: s.held_out_blocks]
        known = {one.turns[-2:] for one, _ in test}
        train = [kept[number] for number in order[held:]]
        unknown = [(one, rows) for one, rows in train if known.isdisjoint(one.exchanges)]
        if not unknown:
            raise TextError(
                f"data is {s.data!r}; each conversation to train on has a question and answer that "
                "are held out, such as a greeting. Give more conversations, or others."
            )
        self._left_out = len(train) - len(unknown)
        self.train, self.test = (
            TokenDataset.of_rows(
                [row for _, rows in part for row in rows], s.length, tokenizer.eos_token_id
            )
            for part in (unknown, test)
        )
        self._asked = [one for one, _ in test][: s.questions]

    def words(self, rows: str, count: int) -> list[str]:
        """Say what there is and was skipped, and how the ``count`` rows of a step come about."""
        train, test = len(self.train), len(self.test)
        form = "the plain form" if self._chat.is_plain else "the tokenizer's chat template"
        return [
            f"{train:,} conversations to train on, {test} held out, in {form}",
            f"{self._skipped:,} conversations skipped, longer than {self._s.length} tokens",
            f"{self._left_out:,} conversations left out, which answer what is held out",
            f"{count:,} conversations a step = {rows}",
        ]

    def written(self, model: nn.Module, device: torch.device) -> str:
        """Let the model answer questions that were held out; returns their answers as JSON."""
        tokenizer, new_tokens = self._tokenizer, self._s.new_tokens
        questions = [self._chat.question(one) for one in self._asked]
        return json.dumps(
            [causal_lm.answered(model, tokenizer, one, new_tokens, device) for one in questions]
        )

    def summary(self, before: str, after: str) -> dict[str, object]:
        """Return questions and answers, and the share of answers that are right word for word."""
        wanted = [one.turns[-1].content.strip() for one in self._asked]
        questions = [one.turns[-2].content if one.turns[1:] else "" for one in self._asked]
        generated, shares = [], []
        for answers in (json.loads(before), json.loads(after)):
            pairs = zip(questions, answers, strict=True)
            generated.append("\n".join(f"{question}\n  {answer}" for question, answer in pairs))
            right = [answer == one for answer, one in zip(answers, wanted, strict=True)]
            shares.append(sum(right) / len(right) if right else None)
        return {"generated": generated, "answers_wanted": wanted, "answers_right": shares}
