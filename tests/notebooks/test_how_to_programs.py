"""The how-tos' commands that start a template's program: each is run as it is on its page.

What a reader replaces is replaced, and options are added with which little is computed. Of a job's
``srun`` two processes are started, as Slurm starts them on a node each.
"""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import tiny_models
from tests.instance import ROOT
from tests.notebooks import pictures as made_up
from tests.notebooks.running import ONE_THREAD, Run, as_by_srun, said_by
from tests.notebooks.test_profiling import SLOW_DATA
from tests.notebooks.test_sweep import OBJECTIVE
from tests.notebooks.test_tables import IMPORTED, houses, written
from tests.pages import how_to, lines

pytestmark = pytest.mark.usefixtures("without_gpu")
TEMPLATES = ROOT / "notebook_templates"


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
    ("train-with-lightning.md", 0): Block(("my_training.py",), {}),
    ("train-with-lightning.md", 1): Block(
        _TWO, {_RUN: f"--epochs 1 --batch 32 {_RUN}"}, modules=("lightning.pytorch",)
    ),
}


@pytest.fixture(scope="module")
def models(preloaded: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model and a network for images, as they are in the folder of a real one."""
    folder = tmp_path_factory.mktemp("models")
    recipes = (tiny_models.text(folder / "text"), tiny_models.image(folder / "image"))
    tiny_models.make(preloaded("pytorch"), *recipes)
    return folder


@pytest.fixture(scope="module")
def sound_pictures(
    python_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Pictures of three classes, none of them broken."""
    folder = tmp_path_factory.mktemp("sound")
    sizes = map(str, (3, 20, 60, 80))
    argv = [str(python_of("pytorch")), "-c", made_up.MAKE, str(folder), *sizes]
    subprocess.run(argv, check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def shards(prepare: Run, sound_pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as shards."""
    folder = tmp_path_factory.mktemp("shards")
    done = prepare("write", sound_pictures, folder, "--shards", 8)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def home(tmp_path: Path, nas: Path, models: Path, sound_pictures: Path, shards: Path) -> Path:
    """A user's home with the templates, and what the pages take for granted."""
    for link, target in (
        ("templates", TEMPLATES),
        ("isilon", nas),
        ("models", models),
        ("pictures", sound_pictures),
        ("shards/train", shards),
    ):
        (tmp_path / link).parent.mkdir(exist_ok=True)
        (tmp_path / link).symlink_to(target)
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
    python_of: Callable[[str], Path],
    preloaded: Callable[..., Path],
) -> None:
    block = BLOCKS[key]
    for name, text in block.files.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    python = str(preloaded(block.framework, *block.modules))
    programs = python_of(block.framework).parent
    variables = {**ONE_THREAD, "HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"}
    for program, *words in lines(how_to(key[0], key[1], block.replaced)):
        argv = at_home(words, home)
        if program == "srun":
            option, interpreter, *rest = argv
            assert (option, interpreter) == ("--ntasks-per-node=4", "python")
            job = [python, "-B", *rest]
            assert as_by_srun(job, 2, home, **variables) == [0, 0], " ".join(words)
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
    key: tuple[str, int], python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    ((_, *words),) = (line for line in lines(how_to(*key)) if line[0] == "hf")
    argv = [python_of("pytorch").with_name("hf"), *words]
    said = said_by(argv, {"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}, tmp_path)
    assert "offline mode is enabled" in said
