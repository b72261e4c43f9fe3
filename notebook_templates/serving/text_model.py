"""A causal language model: it continues texts, and answers in conversations."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# The form of conversations is that of the fine-tuning.
sys.path.append(str(Path(__file__).resolve().parent.parent / "language"))
import peft
import torch
import transformers
from chat import Chat
from completions import MOST_TOKENS, RequestError, Sampling, WrittenText
from conversations import turns_of
from growing_text import GrowingText
from model_folders import ModelFolder
from texts import TextError


@dataclass(eq=False)
class Writing:
    """A text that is to be written behind a prompt, for somebody who may go away."""

    prompt: list[int]
    sampling: Sampling
    told: Callable[[str], object] | None = None
    """Is given each part as it is written, in the model's thread."""
    is_wanted: bool = True
    load: int = 0
    """Which of the models that were loaded one after the other has prepared it."""
    request: int = 0
    """Whose texts alone it may be written together with: all draw from the same random numbers,
    and a request with a seed is to get the same ones again. 0: with any."""


class TextModel:
    """A causal language model and its tokenizer."""

    def __init__(self, folder: ModelFolder, device: torch.device) -> None:
        """Read it, with its LoRA adapter if it has one."""
        base = folder.base or folder.path
        # The fine-tuning leaves one with the adapter, which knows the form of conversations.
        has_own = (folder.path / "tokenizer_config.json").exists()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder.path if has_own else base),
            local_files_only=True,
            trust_remote_code=False,
            padding_side="left",
        )
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        network: Any = transformers.AutoModelForCausalLM.from_pretrained(
            str(base),
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            # What the weights were saved as is too slow on most CPUs.
            dtype="auto" if device.type == "cuda" else torch.float32,
        )
        if folder.base is not None:
            network = peft.PeftModel.from_pretrained(network, str(folder.path))
        self._network = network.to(device).eval()
        self._device = device
        self._most = getattr(network.config, "max_position_embeddings", None)
        ends = self._network.generation_config.eos_token_id
        self._ends = set(ends if isinstance(ends, list) else [ends]) - {None}
        self.has_chat_template = bool(self._tokenizer.chat_template)
        """Whether it was taught conversations; otherwise they have the fine-tuning's plain form."""
        self._chat, self._no_chat = self._chat_or_reason()
        self._ends |= set() if self._chat is None else self._chat.ends()

    def _chat_or_reason(self) -> tuple[Chat | None, str]:
        try:
            return Chat(self._tokenizer), ""
        except TextError as error:
            return None, str(error)

    def to_continue(self, text: str, sampling: Sampling) -> Writing:
        """Prepare to continue a text; raises `RequestError`."""
        return self._writing(self._tokenizer(text, verbose=False)["input_ids"], sampling)

    def to_answer(self, messages: Sequence[Any], sampling: Sampling) -> Writing:
        """Prepare to answer in a conversation, as the fine-tuning does; raises `RequestError`."""
        if self._chat is None:
            raise RequestError(f"this model continues texts only: {self._no_chat}")
        try:
            prompt = self._chat.asked(turns_of(list(messages), "messages"), "messages")
        except TextError as error:
            raise RequestError(str(error)) from error
        return self._writing(prompt, sampling)

    def _writing(self, prompt: list[int], sampling: Sampling) -> Writing:
        length, asked = len(prompt), sampling.max_tokens
        if not length:
            raise RequestError("the prompt is empty: this model needs at least one token")
        if self._most is not None and self._most - length < (asked or 1):
            asked_for = "" if asked is None else f" and max_tokens is {asked}"
            raise RequestError(
                f"the prompt has {length} tokens{asked_for}; "
                f"this model can take {self._most} together"
            )
        left = MOST_TOKENS if self._most is None else min(self._most - length, MOST_TOKENS)
        return Writing(prompt, replace(sampling, max_tokens=asked or left))

    def written(self, writings: Sequence[Writing]) -> list[WrittenText]:
        """Write texts together, all with the same sampling; raises `RequestError`."""
        rows = [_Row(one, self._decoded, self._ends) for one in writings]
        if any(one.is_wanted for one in writings):
            try:
                self._write(writings[0].sampling, rows)
            except torch.OutOfMemoryError as error:
                raise RequestError(
                    "the GPU's memory is full: ask for fewer tokens, or fewer texts at once"
                ) from error
        return [row.closed() for row in rows]

    def _write(self, sampling: Sampling, rows: Sequence["_Row"]) -> None:
        prompts = {"input_ids": [row.writing.prompt for row in rows]}
        given = self._tokenizer.pad(prompts, return_tensors="pt").to(self._device)
        drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        if sampling.seed is not None:
            torch.manual_seed(sampling.seed)
        with torch.inference_mode():
            self._network.generate(
                input_ids=given["input_ids"],
                attention_mask=given["attention_mask"],
                max_new_tokens=sampling.max_tokens,
                pad_token_id=self._tokenizer.pad_token_id,
                do_sample=sampling.is_drawn,
                stopping_criteria=[_Rows(rows)],
                **(drawn if sampling.is_drawn else {}),
            )

    def _decoded(self, tokens: list[int]) -> str:
        # What is cleaned up would depend on what follows.
        return str(
            self._tokenizer.decode(
                tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )


class _Row:
    """A text that is being written."""

    def __init__(
        self, writing: Writing, decode: Callable[[list[int]], str], ends: set[int]
    ) -> None:
        self.writing = writing
        self._ends = ends
        self._text = GrowingText(decode, writing.sampling.stop)
        self._tokens, self._has_ended = 0, False

    @property
    def is_done(self) -> bool:
        return self._has_ended or self._text.is_stopped or not self.writing.is_wanted

    def add(self, token: int) -> None:
        """Take the next token; those behind the end are padding."""
        if self.is_done:
            return
        if token in self._ends:
            self._has_ended = True
            return
        self._tokens += 1
        self._tell(self._text.add(token))

    def closed(self) -> WrittenText:
        self._tell(self._text.end())
        is_finished = self._has_ended or self._text.is_stopped
        return WrittenText(self._text.text, len(self.writing.prompt), self._tokens, is_finished)

    def _tell(self, part: str) -> None:
        if part and self.writing.told is not None:
            self.writing.told(part)


class _Rows(transformers.StoppingCriteria):
    """Sees each token when it is written, and ends those texts that are done or not wanted."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows

    def __call__(self, tokens: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        for row, token in zip(self._rows, tokens[:, -1].tolist(), strict=True):
            row.add(token)
        return torch.tensor([row.is_done for row in self._rows], device=tokens.device)
