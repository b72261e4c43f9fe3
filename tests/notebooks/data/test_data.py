"""JPEG folders become shards that the frameworks themselves read, whatever happens meanwhile."""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.pictures import CLASSES, SOUND
from tests.notebooks.running import Run, printed_by
from tests.waiting import until

PREPARE = ROOT / "notebook_templates" / "data" / "prepare.py"
SHARDS, COPIES = 4, 2
# Each prints, for every picture in the shards, the SHA-256 of its JPEG data and its label.
READERS = {
    "tfrecord": (
        "tensorflow",
        """
import hashlib, json, sys
import tensorflow as tf
text, number = tf.io.FixedLenFeature([], tf.string), tf.io.FixedLenFeature([], tf.int64)
names = {"image/encoded": text, "image/class/label": number, "image/height": number,
         "image/width": number, "image/class/text": text, "image/filename": text}
found = []
for record in tf.data.TFRecordDataset(sys.argv[1:]):
    one = tf.io.parse_single_example(record, names)
    assert one["image/class/text"] == f"class{int(one['image/class/label'])}"
    shape = tuple(tf.io.decode_jpeg(one["image/encoded"]).shape)
    assert shape == (int(one["image/height"]), int(one["image/width"]), 3)
    data = one["image/encoded"].numpy()
    found.append([hashlib.sha256(data).hexdigest(), int(one["image/class/label"])])
print(json.dumps(found))
""",
    ),
    "recordio": (
        "mxnet",
        """
import hashlib, json, sys
import mxnet
found = []
for name in sys.argv[1:]:
    shard = mxnet.recordio.MXIndexedRecordIO(name.replace(".rec", ".idx"), name, "r")
    for key in reversed(shard.keys):
        head, data = mxnet.recordio.unpack(shard.read_idx(key))
        assert mxnet.image.imdecode(data).shape == (60, 80, 3)
        found.append([hashlib.sha256(data).hexdigest(), int(head.label)])
print(json.dumps(found))
""",
    ),
    "webdataset": (
        "pytorch",
        """
import hashlib, json, sys
import webdataset
found = []
for one in webdataset.WebDataset(sys.argv[1:], shardshuffle=False):
    found.append([hashlib.sha256(one["jpg"]).hexdigest(), int(one["cls"])])
print(json.dumps(found))
""",
    ),
}
TRAIN = """
import hashlib, json, sys
from torch.utils.data import DataLoader
from readers import Shards

def epoch(rank, number, **more):
    shards = Shards("shards", mounts=["/nowhere", sys.argv[1]], rank=rank, ranks=4, **more)
    shards.epoch = number
    loaded = DataLoader(shards, batch_size=None, num_workers=0)
    return [[hashlib.sha256(image.numpy().tobytes()).hexdigest(), list(image.shape), label]
            for image, label in loaded]

two = Shards(sys.argv[1] + "/shards", rank=0, ranks=2, size=32)
both = list(DataLoader(two, batch_size=10, num_workers=2))
print(json.dumps({"first": epoch(1, 0), "again": epoch(1, 0), "next": epoch(1, 1),
                  "other": epoch(3, 0), "two": sum(len(labels) for _, labels in both)}))
"""
# What a reader does whose shards have no picture that can be read.
EMPTY = """
from pathlib import Path
import readers

readers.records = lambda plan, file: iter(())
shards = readers.Shards.__new__(readers.Shards)
shards.plan, shards.folder, shards.shuffle = None, Path("/data"), 10
try:
    next(shards.drawn(["one", "two"], "1"))
except readers.DataError as error:
    print(error)
"""
SUFFIX = {"tfrecord": "", "recordio": ".rec", "webdataset": ".tar"}


@pytest.fixture(scope="module", params=sorted(READERS))
def written(
    request: pytest.FixtureRequest,
    prepare: Run,
    pictures: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path, str]:
    folder = tmp_path_factory.mktemp(request.param)
    options = ["--shards", SHARDS, "--copies", COPIES, "--format", request.param]
    done = prepare("write", pictures, folder, *options)
    assert done.returncode == 0, done.stderr
    return request.param, folder, done.stdout


def bytes_in(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "plan.json"
    }


def test_the_framework_itself_reads_every_picture_and_its_label(
    written: tuple[str, Path, str], python_of: Callable[[str], Path], pictures: Path
) -> None:
    name, folder, _ = written
    framework, program = READERS[name]
    total = SHARDS * COPIES
    shards = [folder / f"train-{n:05d}-of-{total:05d}{SUFFIX[name]}" for n in range(total)]
    argv = [str(python_of(framework)), "-c", program, *map(str, shards)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    expected = [
        [hashlib.sha256(path.read_bytes()).hexdigest(), int(path.parent.name[-1])]
        for path in pictures.glob("*/[0-9]*.jpg")
    ]
    assert len(expected) == SOUND
    assert sorted(found) == sorted(expected * COPIES)


def test_bad_files_are_named_and_counted(written: tuple[str, Path, str]) -> None:
    said = written[2]
    assert "left out: class1/cut.jpg cannot be decoded" in said
    assert "left out: class2/text.jpg is not a picture" in said
    assert f"{SOUND * COPIES} images" in said
    assert "2 files left out" in said
    assert "expected cache hit rate" in said


def test_what_was_written_is_read_back_and_damage_is_found(
    written: tuple[str, Path, str], prepare: Run
) -> None:
    name, folder, _ = written
    assert f"{SOUND * COPIES} images read back" in prepare("verify", folder).stdout
    shard = folder / f"train-00005-of-00008{SUFFIX[name]}"  # of the second copy
    sound = shard.read_bytes()
    middle = len(sound) // 2
    shard.write_bytes(sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :])
    done = prepare("verify", folder)
    shard.write_bytes(sound)
    assert done.returncode == 1
    assert shard.name in done.stderr


def test_nothing_is_overwritten_without_being_told(
    written: tuple[str, Path, str], prepare: Run, pictures: Path
) -> None:
    name, folder, _ = written
    before = bytes_in(folder)
    other = ["write", pictures, folder, "--format", name, "--shards", 2]
    refused = prepare(*other)
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr
    assert bytes_in(folder) == before


def test_files_of_others_are_never_removed(prepare: Run, pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years")
    refused = prepare("write", pictures, tmp_path, "--shards", 2, "--overwrite")
    assert refused.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_bad_file_ends_a_strict_run(prepare: Run, pictures: Path, tmp_path: Path) -> None:
    done = prepare("write", pictures, tmp_path, "--shards", 1, "--strict")
    assert done.returncode == 1
    assert "class1/cut.jpg" in done.stderr or "class2/text.jpg" in done.stderr
    assert not (tmp_path / "manifest.json").exists()


def test_a_killed_run_goes_on_and_gives_the_same_bytes(
    prepare: Run, python_of: Callable[[str], Path], pictures: Path, tmp_path: Path
) -> None:
    options = ["--shards", "40", "--enlarge", "12", "--format", "recordio", "--workers", "1"]
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    argv = [str(python_of("pytorch")), "-B", str(PREPARE), "write", str(pictures), str(broken)]
    with subprocess.Popen([*argv, *options], stdout=subprocess.DEVNULL) as running:
        record = broken / "finished.jsonl"
        until(
            lambda: record.exists() and record.read_text().count("\n") > 2,
            seconds=60,
            what="three shards",
            every=0.01,
        )
        running.kill()
    assert not (broken / "manifest.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in broken.glob("train-0000[01]*")}
    assert len(kept) == 4
    assert prepare("write", pictures, broken, *options).returncode == 0
    assert prepare("write", pictures, unbroken, *options).returncode == 0
    assert bytes_in(broken) == bytes_in(unbroken)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_the_notebook_writes_and_reads_back(
    pictures: Path, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    parameters = {"source": str(pictures), "destination": str(tmp_path / "shards"), "shards": 4}
    notebook = PREPARE.with_name("prepare.ipynb")
    printed = printed_by(notebook, python_of("pytorch"), tmp_path, parameters)
    assert "2 files left out" in printed
    assert f"{SOUND} images read back" in printed


def test_ranks_read_their_own_shards_from_their_own_mount_the_same_way_each_time(
    written: tuple[str, Path, str], python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "shards").symlink_to(written[1])
    done = subprocess.run(
        [str(python_of("pytorch")), "-B", "-c", TRAIN, str(tmp_path)],
        cwd=PREPARE.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["first"] == found["again"]
    images = {name: {one[0] for one in found[name]} for name in ("first", "next", "other")}
    assert not images["first"] & images["other"]
    assert images["first"] != images["next"]
    assert len(found["first"]) == len(found["other"]) == SOUND * COPIES // 4
    assert all(shape == [224, 224, 3] for _, shape, _ in found["first"])
    assert {label for _, _, label in found["first"]} == set(range(CLASSES))
    assert found["two"] == SOUND * COPIES // 4 * 2


def test_a_reader_without_a_picture_says_so(python_of: Callable[[str], Path]) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", EMPTY]
    done = subprocess.run(
        argv, cwd=PREPARE.parent, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.startswith("no picture is in one, two of /data"), done.stderr
