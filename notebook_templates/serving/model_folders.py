"""Folders with a model that can be served: what a fine-tuning has exported, or anybody's.

Such a folder has ``config.json`` and weights as safetensors, or it is a LoRA adapter of peft, which
names the folder of its base model. Safetensors are numbers alone: unlike a pickle, they cannot run
code when they are read.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

DEPTH = 5  # folders below a root that are looked into
MOST = 100  # models that are listed
CONFIG, ADAPTER = "config.json", "adapter_config.json"
# How the names of transformers' classes end: config.json names the one that was saved.
TEXT_CLASSES = ("ForCausalLM", "LMHeadModel")
IMAGE_CLASSES = ("ForImageClassification",)

Kind = Literal["text", "image"]


class ModelFolderError(ValueError):
    """A folder has no model that can be served; the message says why."""


@dataclass(frozen=True)
class ModelFolder:
    """A model that can be served."""

    path: Path
    kind: Kind
    base: Path | None
    """The base model of a LoRA adapter."""
    modified: float
    """When its weights were written, in seconds since 1970."""
    size_mb: float

    @property
    def name(self) -> str:
        """How clients and pages call it: its run's name and its own."""
        return "/".join(self.path.parts[-2:]).lstrip("/")


def found(roots: Iterable[Path]) -> list[ModelFolder]:
    """Return the models below these folders, newest first.

    Not those whose paths are not UTF-8: a page cannot name them.
    """
    models = []
    for folder in {folder for root in roots for folder in _folders(root)}:
        try:
            str(folder).encode()
            models.append(described(folder))
        except (ModelFolderError, UnicodeEncodeError):
            continue  # a folder that lacks one of a model's files, or with another kind of model
    newest_first = sorted(models, key=lambda model: (-model.modified, str(model.path)))
    return newest_first[:MOST]


def at(text: str) -> ModelFolder:
    """Return what is in the folder that a user has entered; raises `ModelFolderError`."""
    folder = Path(text).expanduser()
    if not folder.is_absolute():
        raise ModelFolderError(f"{text}: the path of a folder begins with / or ~")
    return described(folder)


def described(folder: Path) -> ModelFolder:
    """Return what is in a folder; raises `ModelFolderError`."""
    try:
        return _described(folder)
    # What somebody else keeps to himself, such as an adapter's base, or what is written just now.
    except OSError as error:
        raise ModelFolderError(
            f"{error.filename or folder} cannot be read: {error.strerror}"
        ) from error


def _described(folder: Path) -> ModelFolder:
    if not folder.is_dir():
        raise ModelFolderError(f"{folder}: there is no such folder")
    base = _base_of(folder)
    config = _json_of((base or folder) / CONFIG)
    if "auto_map" in config:
        raise ModelFolderError(
            f"{folder}: this model brings Python code of its own, which is not run here"
        )
    return ModelFolder(folder, _kind(folder, config), base, *_weights(folder))


def _folders(root: Path) -> Iterator[Path]:
    for place, below, files in os.walk(root):
        depth = len(Path(place).relative_to(root).parts)
        below[:] = [name for name in below if not name.startswith(".")] if depth < DEPTH else []
        if CONFIG in files or ADAPTER in files:
            yield Path(place)


def _base_of(folder: Path) -> Path | None:
    if not (folder / ADAPTER).exists():
        return None
    adapter = _json_of(folder / ADAPTER)
    base = Path(str(adapter.get("base_model_name_or_path", ""))).expanduser()
    if not base.is_absolute() or not base.is_dir():
        raise ModelFolderError(f"{folder}: there is no folder {base}, its base model")
    return base


def _json_of(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelFolderError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelFolderError(f"{file} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelFolderError(f"{file} is not an object of JSON")
    return content


def _kind(folder: Path, config: dict[str, Any]) -> Kind:
    named = config.get("architectures")
    classes = [str(name) for name in named] if isinstance(named, list) else []
    kinds: Sequence[tuple[Kind, tuple[str, ...]]] = (
        ("text", TEXT_CLASSES),
        ("image", IMAGE_CLASSES),
    )
    for kind, endings in kinds:
        if any(name.endswith(endings) for name in classes):
            return kind
    raise ModelFolderError(
        f"{folder}: {', '.join(classes) or 'a model without architectures in config.json'} neither "
        "writes text (ForCausalLM) nor classifies images (ForImageClassification)"
    )


def _weights(folder: Path) -> tuple[float, float]:
    files = [file.stat() for file in folder.glob("*.safetensors") if file.is_file()]
    if not files:
        raise ModelFolderError(
            f"{folder} has no *.safetensors. Save the model with save_pretrained: other weights "
            "are pickles, which can run code when they are read."
        )
    modified = max(one.st_mtime for one in files)
    return modified, sum(one.st_size for one in files) / 1e6
