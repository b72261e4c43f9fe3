"""The how-tos' commands that start a template's program: each is run as it is on its page.

What a reader replaces is replaced, and options are added with which little is computed. Of a job's
``srun`` two processes are started, as Slurm starts them on a node each.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.notebooks import pictures as made_up
from tests.notebooks import preloaded as interpreters
from tests.notebooks.running import SPARING, as_by_srun, framework_python, is_named, said_by
from tests.notebooks.test_profiling import SLOW_DATA
from tests.notebooks.test_sweep import OBJECTIVE
from tests.notebooks.test_tables import IMPORTED, houses, written
from tests.pages import how_to, lines
from tests.training import tiny_models

TEMPLATES = ROOT / "notebook_templates"
NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}


@dataclass(frozen=True)
class Block:
    """What a reader replaces in a block, and the files that its programs leave."""

    leaves: tuple[str, ...]
    replaced: Mapping[str, str]
    framework: str = "pytorch"
    modules: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """What of the reader's own is in the home."""


_RUN = "--results run"
_JAX = f"--texts 16 --length 64 --width 64 --layers 2 --steps 10 {_RUN}"
_KERAS = f"--images 40 --width 64 --steps 10 --report-every 10 {_RUN}"
_LANGUAGE = f"--length 32 --steps 2 {_RUN}"
_VISION = f"--batch 8 --steps 2 --workers 0 {_RUN}"
_RESNET = "--model tiny --batch 16 --steps 2"
_TABLE = f"--rounds 20 --workers 1 {_RUN}"
_TWO = ("run1/summary.json", "run2/summary.json")
BLOCKS: Mapping[tuple[str, int], Block] = {
    ("divide-a-model-with-jax.md", 0): Block(_TWO, {_RUN: _JAX}, "jax"),
    ("divide-a-model-with-jax.md", 1): Block(
        ("run3/model.keras", "run4/model.keras"), {_RUN: _KERAS}, "jax"
    ),
    ("fine-tune-a-language-model.md", 1): Block(
        _TWO,
        {_RUN: _LANGUAGE, "/mnt/isilon/models/NAME": "~/models/text"},
        files={"texts/licence.txt": "This License is free\n" * 200},
    ),
    ("fine-tune-a-vision-transformer.md", 1): Block(
        _TWO, {_RUN: _VISION, "/mnt/isilon/models/NAME": "~/models/image"}
    ),
    ("prepare-data.md", 1): Block(("run1/summary.json",), {_RUN: f"{_RESNET} --size 32 {_RUN}"}),
    ("run-your-own-program.md", 0): Block(
        ("progress.jsonl",),
        # What is there already would be continued: nothing is left to do after its end.
        {"\n": "\nrm checkpoint.pt\n", "--nproc-per-node=4": "--standalone --nproc-per-node=2"},
        modules=("torch",),
    ),
    ("search-for-hyper-parameters.md", 0): Block(
        ("sweep1/journal.log",), {"--trials 40": "--trials 4"}, files={"mine.py": OBJECTIVE}
    ),
    ("see-where-time-goes.md", 0): Block(
        ("logs/profiling/first/summary.json",),
        {"--training": "--steps 5 --warm-up 1 --training"},
        files={"mine.py": SLOW_DATA},
    ),
    ("serve-a-model.md", 2): Block(
        ("run1/parts/*.jsonl",), {"~/logs/vision/NAME/best": "~/models/image"}
    ),
    ("train-on-a-table.md", 0): Block(
        ("run1/model/model.ubj", "predictions.csv"), {_RUN: _TABLE}, modules=IMPORTED
    ),
    ("train-on-several-nodes.md", 0): Block(_TWO, {_RUN: f"{_RESNET} {_RUN}"}),
    ("train-with-lightning.md", 0): Block(
        _TWO, {_RUN: f"--epochs 1 --batch 32 {_RUN}"}, modules=("lightning.pytorch",)
    ),
}


@pytest.fixture(scope="module")
def preloaded() -> Iterator[Callable[..., Path]]:
    """Find what runs programs as a framework's interpreter does, which has imported modules."""
    with ExitStack() as servers:

        @cache
        def program(framework: str, *modules: str) -> Path:
            python = framework_python(framework)
            if is_named(framework):
                return python
            imported = modules or interpreters.MODULES[framework]
            variables = interpreters.VARIABLES[framework]
            return servers.enter_context(interpreters.preloaded(python, imported, **variables))

        yield program


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with digits, models, pictures of three classes, and shards of them."""
    folder, python = tmp_path_factory.mktemp("given"), str(framework_python("pytorch"))
    stand_in = TEMPLATES / "data/make_mnist_stand_in.py"
    tensorflow = str(framework_python("tensorflow"))
    prepare = [str(TEMPLATES / "data/prepare.py"), "write"]
    for argv in (
        [tensorflow, "-B", str(stand_in), f"{folder}/isilon/datasets/mnist"],
        [python, "-c", made_up.MAKE, f"{folder}/pictures", *map(str, (3, 40, 60, 80))],
        [python, "-B", *prepare, f"{folder}/pictures", f"{folder}/shards/train", "--shards", "8"],
    ):
        variables = {**os.environ, **SPARING}
        subprocess.run(argv, check=True, capture_output=True, timeout=120, env=variables)
    models = folder / "models"
    recipes = (tiny_models.text(models / "text"), tiny_models.image(models / "image"))
    tiny_models.make(framework_python("pytorch"), *recipes)
    return folder


@pytest.fixture
def home(tmp_path: Path, given: Path) -> Path:
    """A user's home with the templates, and what the pages take for granted."""
    for target in (TEMPLATES, *given.iterdir()):
        name = "templates" if target == TEMPLATES else target.name
        (tmp_path / name).symlink_to(target)
    (tmp_path / "train.py").write_bytes((TEMPLATES / "distributed/minimal/train.py").read_bytes())
    written(tmp_path / "my.csv", houses(300))
    written(tmp_path / "new.csv", houses(20))
    return tmp_path


def at_home(words: list[str], home: Path) -> list[str]:
    """Return words with the home for each ~, as a shell has it."""
    return [f"{home}{word[1:]}" if word.startswith("~/") else word for word in words]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("key", BLOCKS, ids=lambda key: f"{key[0]}-{key[1]}")
def test_a_program_is_started_as_the_page_says(
    key: tuple[str, int],
    home: Path,
    preloaded: Callable[..., Path],
) -> None:
    block = BLOCKS[key]
    for name, text in block.files.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    python = str(preloaded(block.framework, *block.modules))
    programs = framework_python(block.framework).parent
    variables = {**SPARING, **NO_GPU, "HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"}
    for program, *words in lines(how_to(key[0], key[1], block.replaced)):
        argv = at_home(words, home)
        if program == "srun":
            option, interpreter, *rest = argv
            assert (option, interpreter) == ("--ntasks-per-node=4", "python")
            job = ["/usr/bin/env", f"--chdir={home}", python, "-B", *rest]
            assert as_by_srun(job, 2, **variables) == [0, 0], " ".join(words)
        else:
            argv = [python, "-B", *argv] if program == "python" else [program, *argv]
            said = said_by(argv, variables, home)
            assert "rror" not in said, said
    for pattern in block.leaves:
        assert list(home.glob(pattern)), pattern


@pytest.mark.parametrize(
    "key",
    [
        ("fine-tune-a-language-model.md", 0),
        ("fine-tune-a-vision-transformer.md", 0),
        ("measure-inference.md", 2),
    ],
    ids=lambda key: f"{key[0]}-{key[1]}",
)
def test_a_download_from_hugging_face_lacks_nothing_but_the_way_there(
    key: tuple[str, int], tmp_path: Path
) -> None:
    ((_, *words),) = (line for line in lines(how_to(*key)) if line[0] == "hf")
    argv = [str(framework_python("pytorch").with_name("hf")), *words]
    said = said_by(argv, {"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}, tmp_path)
    assert "offline mode is enabled" in said
