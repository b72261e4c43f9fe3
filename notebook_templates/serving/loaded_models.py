"""Models that are loaded: a language model that continues texts, a network that names images."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The model is files; without this they are looked for on the internet first.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# How images are read is among the templates for vision and data.
sys.path += [
    str(Path(__file__).resolve().parent.parent / place)
    for place in ("vision", "distributed", "data")
]
import classifier
import crops
import peft
import torch
import transformers
from completions import Prompt, RequestError, Sampling, WrittenText, until_stop
from digits import DataError
from model_folders import ModelFolder, ModelFolderError

TOP = 5  # classes that an image is given


@dataclass(frozen=True)
class ClassProbability:
    """How likely an image is of a class."""

    name: str
    probability: float


class TextModel:
    """A causal language model and its tokenizer."""

    def __init__(self, folder: ModelFolder, device: torch.device) -> None:
        """Read it, with its LoRA adapter if it has one."""
        base = folder.base or folder.path
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(base), local_files_only=True, trust_remote_code=False, padding_side="left"
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

    def prompt_of(self, messages: Sequence[Any]) -> Prompt:
        """Write a conversation as the model has learned them; raises `RequestError`."""
        if not self._tokenizer.chat_template:
            raise RequestError(
                "this model has no chat template: it continues texts. Use /v1/completions."
            )
        text = self._tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
        return Prompt(str(text), is_whole=True)

    def written(
        self, sampling: Sampling, prompts: Sequence[Prompt]
    ) -> list[WrittenText | Exception]:
        """Continue texts together; one that is too long gets a `RequestError`."""
        answers: dict[int, WrittenText | Exception] = {}
        given: dict[int, list[int]] = {}
        for index, prompt in enumerate(prompts):
            tokens = self._tokenizer(prompt.text, add_special_tokens=not prompt.is_whole)
            given[index] = tokens["input_ids"]
            length = len(given[index])
            if self._most is not None and length + sampling.max_tokens > self._most:
                del given[index]
                answers[index] = RequestError(
                    f"the prompt has {length} tokens and max_tokens is {sampling.max_tokens}; "
                    f"this model can take {self._most} together"
                )
        if given:
            found = self._continued(sampling, list(given.values()))
            for (index, tokens), (text, count, is_finished) in zip(
                given.items(), found, strict=True
            ):
                answers[index] = WrittenText(text, len(tokens), count, is_finished)
        return [answers[index] for index in range(len(prompts))]

    def _continued(
        self, sampling: Sampling, tokens: list[list[int]]
    ) -> list[tuple[str, int, bool]]:
        given = self._tokenizer.pad({"input_ids": tokens}, return_tensors="pt").to(self._device)
        drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        if sampling.seed is not None:
            torch.manual_seed(sampling.seed)
        with torch.inference_mode():
            rows = self._network.generate(
                input_ids=given["input_ids"],
                attention_mask=given["attention_mask"],
                max_new_tokens=sampling.max_tokens,
                pad_token_id=self._tokenizer.pad_token_id,
                do_sample=sampling.temperature > 0,
                **(drawn if sampling.temperature > 0 else {}),
            )[:, given["input_ids"].shape[1] :]
        return [self._ended(row.tolist(), sampling) for row in rows]

    def _ended(self, tokens: list[int], sampling: Sampling) -> tuple[str, int, bool]:
        ends = self._network.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        places = [place for place, token in enumerate(tokens) if token in ends]
        count = places[0] if places else len(tokens)
        text = self._tokenizer.decode(tokens[:count], skip_special_tokens=True)
        text, has_stopped = until_stop(text, sampling.stop)
        return text, count, bool(places) or has_stopped


class ImageModel:
    """A network that gives images one of the classes that it has learned."""

    def __init__(self, folder: ModelFolder, device: torch.device) -> None:
        """Read it, and the names of its classes."""
        self._model = classifier.read(folder.path)
        self._network = self._model.network.to(device).eval()
        self._device = device

    def classified(self, images: Sequence[bytes]) -> list[list[ClassProbability] | Exception]:
        """Name the likeliest classes of files of images; one that is none gets a `RequestError`."""
        answers: dict[int, list[ClassProbability] | Exception] = {}
        pixels = {}
        for index, encoded in enumerate(images):
            try:
                pixels[index] = crops.in_the_middle(encoded, self._model.size)
            except DataError as error:
                answers[index] = RequestError(f"the image {error}")
        if pixels:
            together = torch.stack(list(pixels.values())).to(self._device)
            with torch.inference_mode():
                shares = self._network(self._model.normal(together)).softmax(1).cpu()
            answers |= dict(zip(pixels, map(self._likeliest, shares), strict=True))
        return [answers[index] for index in range(len(images))]

    def _likeliest(self, shares: torch.Tensor) -> list[ClassProbability]:
        found = shares.topk(min(TOP, len(self._model.names)))
        return [
            ClassProbability(self._model.names[number], round(share, 6))
            for share, number in zip(found.values.tolist(), found.indices.tolist(), strict=True)
        ]


def read(folder: ModelFolder) -> TextModel | ImageModel:
    """Load a model, on the GPU if there is one; raises `ModelFolderError`."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kinds = {"text": TextModel, "image": ImageModel}
    try:
        return kinds[folder.kind](folder, device)
    except torch.OutOfMemoryError as error:
        raise ModelFolderError(f"{folder.path} does not fit into the GPU's memory") from error
    # What transformers and safetensors raise for files that are damaged or do not fit together.
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelFolderError(f"{folder.path} cannot be loaded: {said[0]}") from error
