"""All kinds of data train in both engines, and what is wrong with a folder is said in one line."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.notebooks.running import SPARING

TEMPLATES = ROOT / "notebook_templates"
TRAINING = TEMPLATES / "distributed"
ENGINES = {"pytorch": "train_resnet", "tensorflow": "train_resnet_tensorflow"}
KINDS = {
    "pytorch": ["synthetic", "mnist", "folders", "mixed", "tfrecord", "recordio", "webdataset"],
    "tensorflow": ["synthetic", "mnist", "folders", "mixed", "tfrecord"],
}
ENVIRONMENT = {**os.environ, **SPARING}
# What scientists have in their folders; a hidden folder is Jupyter's own.
MAKE = """
import sys
from pathlib import Path
import numpy as np
from PIL import Image

base = Path(sys.argv[1])
for part in ("train", "val"):
    for label in range(3):
        plain, mixed = (base / kind / part / f"class{label}" for kind in ("folders", "mixed"))
        for folder in (plain, mixed, base / "mixed" / part / ".ipynb_checkpoints"):
            folder.mkdir(parents=True, exist_ok=True)
        pixels = np.full((60, 80, 3), 40 + 80 * label, np.uint8)
        image = Image.fromarray(pixels)
        for number in range(4):
            image.save(plain / f"{number}.jpg", quality=100)
        image.save(mixed / "0.JPG", quality=100)
        image.save(mixed / "1.png")
        image.save(mixed / "2.webp", lossless=True)
        image.save(mixed / "3.tiff")
        image.convert("P").save(mixed / "4.gif")
        image.convert("RGBA").save(mixed / "5.png")
        Image.fromarray(pixels[..., 0].astype(np.uint16) * 257).save(mixed / "6.png")
        image.save(mixed / "7.bmp")
        (mixed / "._0.jpg").write_bytes(b"what a Mac leaves")
        (mixed / "notes.txt").write_text("no picture")
"""
# Trains with each kind of data for a few steps, in one process; prints the results.
TRAIN = """
import importlib, json, sys
program, base, places = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
train = importlib.import_module(program)
for kind, place in places.items():
    sys.argv = [program, f"--results={base}/{kind}", f"--data={place}", "--model=tiny", "--size=32",
                "--batch=4", "--images=8", "--steps=2", "--report-every=1"]
    sys.argv += ["--workers=1" if program == "train_resnet" else "--private-threads=2"]
    train.main(train.settings())
"""
# Prints each image's colour and label, of a folder's three classes.
SEEN = {
    "pytorch": """
import images, sys
found = images.open_images(sys.argv[1], 32, 0, [], 0, 1, 1)
for part in (found.train, found.test):
    for at in range(len(part)):
        pixels, label = part[(0, at)]
        print(round(float(pixels[..., 0].float().mean())), label)
""",
    "tensorflow": """
import images_tensorflow as images, sys
from dataclasses import replace
from cuts import MEAN, DEVIATION
from sampler import Sampler
found = images.open_images(sys.argv[1], 32, 0, [], 0)
found = replace(found, private_threads=2)
options = found._in_threads(images.tf.data.Dataset.range(1)).options()
assert options.threading.private_threadpool_size == 2
sampler = Sampler(found.count, 1, 0, 1, 1)
for part in (found.batches(sampler, 0, 0, found.count), found.test_batches(0, 1, 1)):
    for pixels, labels in part:
        colour = float(pixels.numpy()[..., 0].mean()) * DEVIATION[0] + MEAN[0]
        print(round(colour * 255), int(labels[0]))
""",
}

# Prints how many of 24 pictures are cut alike with two seeds, and with the same one.
CUT = {
    "pytorch": """
import images, sys, torch
def cut(seed):
    train = images.open_images(sys.argv[1], 32, 0, [], 0, 1, seed).train
    return [train[0, at][0] for at in range(len(train))]
first, again, other = map(cut, (1, 1, 2**31 - 1))
print(*(sum(map(torch.equal, first, one)) for one in (again, other)))
""",
    "tensorflow": """
import images_tensorflow as images, sys
import numpy as np
from sampler import Sampler
def cut(seed):
    found = images.open_images(sys.argv[1], 32, 0, [], 0)
    sampler = Sampler(found.count, 1, 0, 1, seed)
    order = images.indexes(sampler, 0, 0).ravel()
    pictures = [pixels[0].numpy() for pixels, _ in found.batches(sampler, 0, 0, found.count)]
    return [pictures[at] for at in np.argsort(order)]
first, again, other = map(cut, (1, 1, 2**31 - 1))
print(*(sum(map(np.array_equal, first, one)) for one in (again, other)))
""",
}

# Ends a training when its first epoch is done and kept: in the test after it, or by Slurm's signal.
ENDS = {
    "killed": {
        "pytorch": "t.test_accuracy = lambda *_: os._exit(9)",
        "tensorflow": "t.Network.accuracy = lambda *_: os._exit(9)",
    },
    "signalled": dict.fromkeys(
        ENGINES,
        "t.Schedule.ends_at = lambda self, step: ends_at(self, step)"
        " and not (step and os.kill(os.getpid(), signal.SIGUSR1))",
    ),
}
ENDING = """
import importlib, os, signal, sys
t = importlib.import_module(sys.argv[1])
ends_at = t.Schedule.ends_at
exec(sys.argv[2])
sys.argv[1:3] = []
t.run(t.main, t.settings())
"""

# Prints by what the images of each folder are told.
DIGESTS = {
    "pytorch": "import images, sys\n"
    "for place in sys.argv[1:]: print(images.open_images(place, 32, 0, [], 0, 1, 1).digest)",
    "tensorflow": "import images_tensorflow as images, sys\n"
    "for place in sys.argv[1:]: print(images.open_images(place, 32, 0, [], 0).digest)",
}

PythonOf = Callable[[str], Path]


@pytest.fixture(scope="module")
def data(preloaded: PythonOf, nas: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each kind of data."""
    base = tmp_path_factory.mktemp("data")
    python = str(preloaded("pytorch"))
    subprocess.run([python, "-c", MAKE, str(base)], check=True, timeout=60)
    (base / "mnist").symlink_to(nas / "datasets" / "mnist")
    for kind in ("tfrecord", "recordio", "webdataset"):
        for part in ("train", "val"):
            prepare = [python, "-B", str(TEMPLATES / "data/prepare.py"), "write", "--strict"]
            # PNG and others become JPEG in shards.
            places = [str(base / "mixed" / part), str(base / kind / part)]
            subprocess.run(
                [*prepare, *places, f"--format={kind}", "--shards=2"],
                check=True, capture_output=True, timeout=60,
            )  # fmt: skip
    return base


def python_in_training(python: Path, code: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(python), "-B", "-c", code, *words],
        cwd=TRAINING, capture_output=True, text=True, check=False, timeout=560, env=ENVIRONMENT,
    )  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_kind_of_data_trains(
    engine: str, data: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    places = {kind: kind if kind == "synthetic" else str(data / kind) for kind in KINDS[engine]}
    words = [ENGINES[engine], str(tmp_path), json.dumps(places)]
    done = python_in_training(preloaded(engine), TRAIN, *words)
    assert done.returncode == 0, done.stderr
    found = {kind: json.loads((tmp_path / kind / "summary.json").read_text()) for kind in places}
    assert [one["steps"] for one in found.values()] == [2] * len(places)
    tested = {kind for kind, one in found.items() if one["test_accuracy"] is not None}
    assert tested == set(places) - {"synthetic"}


@pytest.mark.parametrize("engine", ENGINES)
def test_pictures_of_every_kind_are_read_and_hidden_folders_are_no_classes(
    engine: str, data: Path, preloaded: PythonOf
) -> None:
    done = python_in_training(preloaded(engine), SEEN[engine], str(data / "mixed"))
    assert done.returncode == 0, done.stderr
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(found) == 2 * 3 * 8
    # A GIF has few colours.
    assert all(abs(colour - (40 + 80 * label)) < 12 for colour, label in found)
    assert {label for _, label in found} == {0, 1, 2}


@pytest.mark.parametrize("engine", ENGINES)
def test_pictures_are_cut_otherwise_with_another_seed(
    engine: str, preloaded: PythonOf, tmp_path: Path
) -> None:
    python = preloaded(engine)
    noise = "import sys; from pathlib import Path; import numpy as np; from PIL import Image\n"
    noise += "draw = np.random.default_rng(1)\n"
    noise += "for n in range(24):\n    folder = Path(sys.argv[1], 'train', f'class{n % 2}')\n"
    noise += "    folder.mkdir(parents=True, exist_ok=True)\n"
    noise += "    pixels = draw.integers(0, 256, (60, 80, 3), np.uint8)\n"
    noise += "    Image.fromarray(pixels).save(folder / f'{n}.jpg')\n"
    assert python_in_training(python, noise, str(tmp_path)).returncode == 0
    done = python_in_training(python, CUT[engine], str(tmp_path))
    assert done.returncode == 0, done.stderr
    again, other = map(int, done.stdout.split())
    assert again == 24
    assert other < 3


def trained(
    engine: str, preloaded: PythonOf, data: Path, results: Path, *more: str
) -> tuple[int, str]:
    argv = [str(preloaded(engine)), "-B", f"{ENGINES[engine]}.py", f"--results={results}"]
    argv += [f"--data={data}", "--model=tiny", "--size=32", "--batch=4", "--epochs=1", *more]
    done = subprocess.run(
        argv, cwd=TRAINING, capture_output=True, text=True, check=False, timeout=560,
        env=ENVIRONMENT,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_ended_before_its_last_test_is_tested_when_it_is_resumed(
    engine: str, data: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    found = []
    for _ in range(2):
        assert trained(engine, preloaded, data / "mixed", tmp_path)[0] == 0
        found.append(json.loads((tmp_path / "summary.json").read_text()))
        (tmp_path / "summary.json").unlink()
    assert found[0]["test_accuracy"] is not None
    assert found[1]["test_accuracy"] == found[0]["test_accuracy"]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_epoch_is_tested_also_where_a_run_ended_before_its_test(
    engine: str, end: str, data: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    def tests_of(results: Path) -> dict[int, float]:
        assert trained(engine, preloaded, data / "mixed", results, "--epochs=2")[0] == 0
        lines = map(json.loads, (results / "progress.jsonl").read_text().splitlines())
        return {line["step"]: line["test_accuracy"] for line in lines if "test_accuracy" in line}

    broken = tmp_path / "broken"
    words = [f"--results={broken}", f"--data={data / 'mixed'}", "--model=tiny", "--size=32"]
    words += ["--batch=4", "--epochs=2"]
    program = [ENGINES[engine], ENDS[end][engine]]
    done = python_in_training(preloaded(engine), ENDING, *program, *words)
    assert done.returncode == (9 if end == "killed" else 0), done.stderr
    assert "test_accuracy" not in (broken / "progress.jsonl").read_text()
    found = tests_of(broken)
    assert sorted(found) == [6, 12]
    assert found == tests_of(tmp_path / "whole")


@pytest.mark.parametrize("engine", ENGINES)
def test_other_images_are_told_and_the_same_elsewhere_are_not(
    engine: str, data: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    places = []
    for kind in ("folders", "tfrecord"):
        shutil.copytree(data / kind, tmp_path / "same" / kind)
        shutil.copytree(data / kind, tmp_path / "other" / kind)
        places += [data / kind, tmp_path / "same" / kind, tmp_path / "other" / kind]
    (tmp_path / "other/folders/train/class1/0.jpg").unlink()
    (tmp_path / "other/tfrecord/train/manifest.json").write_text("[]\n")
    code = DIGESTS[engine]
    done = python_in_training(preloaded(engine), code, *map(str, [*places, data / "mnist"]))
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    assert [found[0], found[3]] == [found[1], found[4]]
    assert len(set(found)) == 5


@pytest.mark.parametrize("engine", ENGINES)
def test_a_training_is_not_resumed_with_other_pictures(
    engine: str, data: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    shutil.copytree(data / "folders", tmp_path / "mine")
    results = tmp_path / "results"
    assert trained(engine, preloaded, tmp_path / "mine", results, "--steps=1")[0] == 0
    (tmp_path / "mine/train/class0/0.jpg").rename(tmp_path / "mine/train/class2/9.jpg")
    status, said = trained(engine, preloaded, tmp_path / "mine", results, "--steps=2")
    assert status == 1
    assert f"{results} holds a training with data_sha256 = " in said
    assert "or the data that it was begun with to continue" in said
    assert "Traceback" not in said


@pytest.fixture
def spoilt(data: Path, tmp_path: Path) -> Path:
    """A folder with a picture that is cut short, to train on, and a text, to test with."""
    shutil.copytree(data / "folders", tmp_path / "spoilt")
    cut, text = tmp_path / "spoilt/train/class1/2.jpg", tmp_path / "spoilt/val/class0/1.jpg"
    cut.write_bytes(cut.read_bytes()[:300])
    text.write_text("a text")
    return tmp_path / "spoilt"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_broken_picture_is_named_in_one_line(
    engine: str, spoilt: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    status, said = trained(engine, preloaded, spoilt, tmp_path / "results")
    assert status == 1
    (line,) = (tmp_path / "results/error.txt").read_text().splitlines()
    assert f"{spoilt}/train/class1/2.jpg cannot be read" in line
    assert "Traceback" not in said


@pytest.mark.parametrize("engine", ENGINES)
def test_broken_pictures_are_left_out_and_counted_when_that_is_wanted(
    engine: str, spoilt: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    status, said = trained(engine, preloaded, spoilt, tmp_path / "results", "--broken=skip")
    assert status == 0, said
    assert said.count("1 broken picture is left out") == 2
    (train,) = json.loads((tmp_path / "results/broken-train.json").read_text())
    assert train == f"{spoilt}/train/class1/2.jpg"
    # Of 11 that are left, two steps of 4.
    assert json.loads((tmp_path / "results/summary.json").read_text())["images"] == 8


@pytest.mark.parametrize("lacking", ["train", "val"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_that_one_part_lacks_is_named(
    engine: str, lacking: str, data: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    shutil.copytree(data / "folders", tmp_path / "few")
    shutil.rmtree(tmp_path / "few" / lacking / "class1")
    status, said = trained(engine, preloaded, tmp_path / "few", tmp_path / "results")
    assert status == 1
    assert f"few/{lacking} has no folder class1, which" in said
    assert "Traceback" not in said


def test_a_broken_picture_is_left_out_whichever_mount_a_process_reads_through(
    spoilt: Path, preloaded: PythonOf, tmp_path: Path
) -> None:
    mounts = [tmp_path / "first", tmp_path / "second"]
    for mount in mounts:
        mount.symlink_to(spoilt)
    program = (
        "import sys, images, pathlib\nfor rank in range(2):\n"
        "    where = sys.argv[2:], rank, 2, 1, pathlib.Path(sys.argv[1])\n"
        "    print(len(images.open_images('', 32, 0, *where).train))"
    )
    argv = [str(preloaded("pytorch")), "-B", "-c", program, str(tmp_path), *map(str, mounts)]
    said = subprocess.check_output(argv, cwd=TRAINING, text=True, timeout=60)
    assert said.split() == ["11", "11"]
