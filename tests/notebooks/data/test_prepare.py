"""What `prepare.py` promises beyond the bytes: room, overwriting, enlarging, dividing."""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.pictures import CLASSES, EACH, HEIGHT, MAGIC, SOUND, WIDTH
from tests.notebooks.running import Run

DATA = ROOT / "notebook_templates" / "data"
# Two processes read their half of all shards, as distributed training with MXNet does.
MXNET = """
import json, sys
import mxnet
found = []
for part in range(2):
    images = mxnet.io.ImageRecordIter(
        path_imgrec=";".join(sys.argv[1:]), data_shape=(3, 60, 80), batch_size=1, dtype="uint8",
        preprocess_threads=1, num_parts=2, part_index=part)
    found.append([int(batch.label[0].asscalar()) for batch in images])
print(json.dumps(found))
"""
TENSORFLOW = """
import json, sys
import tensorflow as tf
number = tf.io.FixedLenFeature([], tf.int64)
names = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/height": number,
         "image/width": number}
found = []
for record in tf.data.TFRecordDataset(sys.argv[1:]):
    one = tf.io.parse_single_example(record, names)
    image = tf.io.decode_jpeg(one["image/encoded"])
    found.append([*image.shape, int(one["image/height"]), int(one["image/width"])])
print(json.dumps(found))
"""
# A picture of a few pixels, as pages count their readers with, among larger ones.
TINY = """
import sys
from pathlib import Path
from PIL import Image

folder = Path(sys.argv[1], "class0")
folder.mkdir(parents=True)
for side in (1, 5, 8, 64):
    Image.new("RGB", (side, 64)).save(folder / f"{side}-wide.jpg")
    Image.new("RGB", (64, side)).save(folder / f"{side}-high.jpg")
"""
GONE = """
import jpegs, shards
plan = shards.ShardPlan(source="/nowhere", destination="/nowhere", enlarge=3)
print(shards.growth_of(plan, [jpegs.JpegSource("class0/gone.jpg", 0, 1000)]))
"""


def printed(python: Path, program: str, shards: list[Path]) -> Any:
    argv = [str(python), "-c", program, *map(str, shards)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_without_room_nothing_is_written_and_nothing_lost(
    prepare: Run, pictures: Path, tmp_path: Path, overwrite: list[str]
) -> None:
    before = set()
    if overwrite:
        assert prepare("write", pictures, tmp_path, "--shards", 2).returncode == 0
        before = set(tmp_path.glob("train-*"))
        assert len(before) == 2
    copies = shutil.disk_usage(tmp_path).total // (SOUND * HEIGHT * WIDTH) + 1
    refused = prepare("write", pictures, tmp_path, "--shards", 1, "--copies", copies, *overwrite)
    assert refused.returncode == 1
    assert re.search(r"GB are needed, .* GB free: write fewer copies", refused.stderr)
    assert set(tmp_path.glob("train-*")) == before


def test_overwriting_leaves_the_new_shards_and_other_peoples_files(
    prepare: Run, pictures: Path, tmp_path: Path
) -> None:
    assert prepare("write", pictures, tmp_path, "--shards", 3).returncode == 0
    (tmp_path / "notes.txt").write_text("mine")
    told = ["--shards", 2, "--format", "webdataset", "--overwrite"]
    assert prepare("write", pictures, tmp_path, *told).returncode == 0
    names = {path.name for path in tmp_path.iterdir()}
    shards = {f"train-0000{number}-of-00002.tar" for number in range(2)}
    assert names == {*shards, "manifest.json", "plan.json", "notes.txt"}
    assert f"{SOUND} images read back" in prepare("verify", tmp_path).stdout


def test_processes_of_mxnet_divide_the_records_of_all_shards(
    prepare: Run, pictures: Path, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    told = ["--shards", 3, "--format", "recordio"]
    assert prepare("write", pictures, tmp_path, *told).returncode == 0
    shards = sorted(tmp_path.glob("*.rec"))
    # Pictures with the format's magic number in them are records of several parts.
    first_part = re.compile(re.escape(MAGIC) + rb".{3}[\x20-\x3f]", re.DOTALL)
    firsts = sum(len(first_part.findall(shard.read_bytes())) for shard in shards)
    assert firsts >= CLASSES
    halves = printed(python_of("mxnet"), MXNET, shards)
    assert Counter(halves[0] + halves[1]) == dict.fromkeys(range(CLASSES), EACH)
    assert all(SOUND / 3 < len(half) < SOUND * 2 / 3 for half in halves)


def test_enlarged_pictures_are_larger_for_the_framework_too(
    prepare: Run, pictures: Path, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    assert prepare("write", pictures, tmp_path, "--shards", 2, "--enlarge", 3).returncode == 0
    found = printed(python_of("tensorflow"), TENSORFLOW, sorted(tmp_path.glob("train-*")))
    assert len(found) == SOUND
    assert {tuple(one) for one in found} == {(3 * HEIGHT, 3 * WIDTH, 3, 3 * HEIGHT, 3 * WIDTH)}


def test_a_plan_of_before_there_were_versions_is_gone_on_with_and_a_newer_one_refused(
    prepare: Run, pictures: Path, tmp_path: Path
) -> None:
    assert prepare("write", pictures, tmp_path, "--shards", 2).returncode == 0
    plan = json.loads((tmp_path / "plan.json").read_text())
    older = {key: one for key, one in plan.items() if key != "schema"}
    (tmp_path / "plan.json").write_text(json.dumps(older))
    assert prepare("write", pictures, tmp_path, "--shards", 2).returncode == 0
    assert json.loads((tmp_path / "plan.json").read_text()) == plan
    (tmp_path / "plan.json").write_text(json.dumps(plan | {"schema": 2}))
    for verb in (("write", pictures, tmp_path, "--shards", 2), ("verify", tmp_path)):
        refused = prepare(*verb)
        assert refused.returncode != 0
        assert "has schema 2, and this program reads up to 1" in refused.stderr


def test_pictures_of_a_few_pixels_are_pictures(
    prepare: Run, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    source, shards = tmp_path / "pictures", tmp_path / "shards"
    subprocess.run([str(python_of("pytorch")), "-c", TINY, str(source)], check=True, timeout=60)
    done = prepare("write", source, shards, "--shards", 1)
    assert done.returncode == 0, done.stderr
    assert "8 images" in done.stdout
    assert "8 images read back" in prepare("verify", shards).stdout


def test_a_picture_that_cannot_be_read_does_not_end_the_estimate(
    python_of: Callable[[str], Path],
) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", GONE]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=DATA)
    assert done.stdout == "9.0\n", done.stderr


# The length of the first record, and the highest bytes of its label: without end.
@pytest.mark.parametrize(("at", "damage"), [(4, b"\x08\0\0\0"), (14, b"\x80\x7f")])
def test_a_damaged_record_is_said_in_a_sentence(
    prepare: Run, pictures: Path, tmp_path: Path, at: int, damage: bytes
) -> None:
    assert (
        prepare("write", pictures, tmp_path, "--shards", 1, "--format", "recordio").returncode == 0
    )
    (shard,) = tmp_path.glob("*.rec")
    with shard.open("r+b") as file:
        file.seek(at)
        file.write(damage)
    refused = prepare("verify", tmp_path)
    assert refused.returncode == 1
    assert "cannot be read back" in refused.stderr
    assert "Traceback" not in refused.stderr
