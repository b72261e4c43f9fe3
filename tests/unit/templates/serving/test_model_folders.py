"""Which folders have a model that can be served, and what is said of the others."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import model_folders
import pytest
from model_folders import ModelFolderError

GPT2 = {"architectures": ["GPT2LMHeadModel"]}
VIT = {"architectures": ["ViTForImageClassification"]}


def made(folder: Path, config: dict[str, Any], *, weights: str = "model.safetensors") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / weights).write_bytes(b"0" * 1_500_000)
    return folder


def adapter(folder: Path, base: Path | str) -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(base), "peft_type": "LORA"})
    )
    (folder / "adapter_model.safetensors").write_bytes(b"0")
    return folder


def test_models_below_the_roots_are_found_newest_first(tmp_path: Path) -> None:
    base = made(tmp_path / "logs/language/run/base", GPT2)
    best = made(tmp_path / "logs/vision/run/best", VIT)
    learnt = adapter(tmp_path / "logs/language/run/adapter", base)
    made(tmp_path / "logs/.hidden/best", VIT)
    made(tmp_path / "logs/other", {"architectures": ["BertModel"]})
    for number, folder in enumerate((base, best, learnt)):
        (weights,) = folder.glob("*.safetensors")
        os.utime(weights, (number, number))
    found = model_folders.found([tmp_path / "logs", tmp_path / "logs/vision", tmp_path / "gone"])
    assert [(one.path, one.kind, one.base) for one in found] == [
        (learnt, "text", base),
        (best, "image", None),
        (base, "text", None),
    ]
    assert found[1].name == "run/best"
    assert found[1].size_mb == 1.5


@pytest.mark.parametrize(
    ("config", "weights", "said"),
    [
        (GPT2, "pytorch_model.bin", r"has no \*\.safetensors.*pickles"),
        (GPT2 | {"auto_map": {"AutoModel": "own.Own"}}, "a.safetensors", "code of its own"),
        ({"architectures": ["BertModel"]}, "a.safetensors", "BertModel neither writes"),
        ({"architectures": "x"}, "a.safetensors", "without architectures"),
        ({}, "a.safetensors", "without architectures"),
    ],
)
def test_what_cannot_be_served_is_refused_in_words(
    tmp_path: Path, config: dict[str, Any], weights: str, said: str
) -> None:
    made(tmp_path / "one", config, weights=weights)
    with pytest.raises(ModelFolderError, match=said):
        model_folders.described(tmp_path / "one")
    assert model_folders.found([tmp_path]) == []


@pytest.mark.parametrize("content", ["", "[]", '{"a": '])
def test_a_broken_config_is_said(tmp_path: Path, content: str) -> None:
    (made(tmp_path / "one", GPT2) / "config.json").write_text(content)
    with pytest.raises(ModelFolderError, match=r"config\.json is not"):
        model_folders.described(tmp_path / "one")


def test_an_adapter_needs_the_folder_of_its_base(tmp_path: Path) -> None:
    bases: list[Path | str] = [tmp_path / "gone", "gpt2"]
    for number, base in enumerate(bases):
        learnt = adapter(tmp_path / f"adapter{number}", base)
        with pytest.raises(ModelFolderError, match=f"no folder {base}, its base model"):
            model_folders.described(learnt)


def test_a_base_that_only_somebody_else_can_read_is_said_and_hides_no_other_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learnt = adapter(tmp_path / "adapter", tmp_path / "theirs/base")
    mine = made(tmp_path / "mine", VIT)
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if path.name == "base":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(ModelFolderError, match="theirs/base cannot be read: Permission denied"):
        model_folders.described(learnt)
    assert [one.path for one in model_folders.found([tmp_path])] == [mine]


def test_a_page_is_not_given_a_path_that_it_cannot_name(tmp_path: Path) -> None:
    made(tmp_path / os.fsdecode(b"caf\xe9"), VIT)
    mine = made(tmp_path / "mine", VIT)
    assert [one.path for one in model_folders.found([tmp_path])] == [mine]


def test_a_folder_that_is_entered_has_a_whole_path(tmp_path: Path) -> None:
    folder = made(tmp_path / "one", VIT)
    assert model_folders.at(str(folder)).path == folder
    for entered in ("one", "./one"):
        with pytest.raises(ModelFolderError, match="begins with / or ~"):
            model_folders.at(entered)
    with pytest.raises(ModelFolderError, match="there is no such folder"):
        model_folders.at(f"{folder}-gone")
