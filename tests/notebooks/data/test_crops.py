"""A part of a picture is the same, whoever decodes it; a broken picture is named, not a crash."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT

DATA = ROOT / "notebook_templates" / "data"
# Mean difference to Pillow's decoding of the whole, of 255. What is much larger than the result the
# decoder makes smaller, in its own way.
AS_PILLOW, AS_PILLOW_SHRUNK = 0.1, 4.0
KINDS = ("colour", "fine", "grey", "cmyk", "progressive", "restarts", "exif", "odd", "tiny")
PICTURES = """
import io, json, random, sys
sys.path += [sys.argv[1]]
import numpy as np
from PIL import Image
import crops
from digits import DataError

def encoded(image, **how):
    file = io.BytesIO()
    image.save(file, "JPEG", **how)
    return file.getvalue()

def photo(width, height):
    rough = np.random.default_rng(1).integers(0, 256, (height // 16 + 2, width // 16 + 2, 3))
    return Image.fromarray(rough.astype(np.uint8)).resize((width, height), Image.Resampling.BICUBIC)

turned = Image.Exif()
turned[0x0112] = 6  # to be turned by 90 degrees
plain = photo(500, 375)
pictures = {
    "colour": encoded(plain), "fine": encoded(plain, subsampling=0, quality=98),
    "grey": encoded(plain.convert("L")), "cmyk": encoded(plain.convert("CMYK")),
    "progressive": encoded(plain, progressive=True), "exif": encoded(plain, exif=turned),
    "restarts": encoded(plain, restart_marker_rows=1), "odd": encoded(photo(331, 257)),
    "tiny": encoded(photo(20, 9)), "large": encoded(photo(1500, 1125)),
    "huge": encoded(photo(4001, 3001)),
}
"""
COMPARE = """
def whole(data, box):
    side = min(box[2] - box[0], box[3] - box[1])
    times = max([1, *(times for times in (2, 4, 8) if side >= 224 * times)])
    box = tuple(at // times * times for at in box)
    image = Image.open(io.BytesIO(data)).convert("RGB").crop(box)
    return np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR)).astype(int)

def boxes(jpeg):
    width, height = jpeg.extent
    corners = [(0, 0, width, height), (0, 0, 1, 1), (width - 1, height - 1, width, height)]
    drawn = [crops.random_box(jpeg.extent, chance) for _ in range(20)]
    return [*corners, *drawn, crops.centre_box(jpeg.extent)]

fast = crops.simplejpeg
assert fast is not None
found = {}
for name, data in pictures.items():
    for decoder in (fast, None):
        crops.simplejpeg, chance = decoder, random.Random(1)
        jpeg = crops.opened(data)
        worst = max(abs(whole(data, box) - jpeg.part(box, 224).numpy()).mean()
                    for box in boxes(jpeg))
        found[f"{name} {'fast' if decoder else 'pillow'}"] = float(worst)
print(json.dumps(found))
"""
BREAK = """
def said(data):
    try:
        return list(crops.at_random(data, 224, chance).shape)
    except DataError as error:
        return str(error)

sound, chance = pictures["colour"], random.Random(1)
arithmetic = sound.replace(b"\\xff\\xc0", b"\\xff\\xc9", 1)
damaged = []
for name in ("colour", "progressive", "cmyk"):
    for number in range(300):
        data = bytearray(pictures[name])
        for _ in range(chance.randint(1, 20)):
            data[chance.randrange(2, len(data) - 2)] = chance.randrange(256)
        damaged.append(said(bytes(data)))
print(json.dumps({
    "half": said(sound[: len(sound) // 2]), "empty": said(b""), "text": said(b"a text"),
    "film": said(sound + bytes(5000)), "cut": said(pictures["exif"][:-300] + bytes(5000)),
    "head": said(sound[:100] + sound[-2:]), "arithmetic": said(arithmetic),
    "flat": said(sound.replace((375).to_bytes(2), bytes(2), 1)), "whole": said(sound),
    "damaged": damaged,
}))
"""
FOLDERS = """
from pathlib import Path
sys.path += [sys.argv[1] + "/../distributed"]
import images
import folders, recordio, torch
from readers import Shards

folder = Path(sys.argv[2])
(folder / "a").mkdir()
for number in range(4):
    (folder / "a" / f"{number}.jpg").write_bytes(pictures["colour"])
(folder / "a" / "4.jpg").write_bytes(pictures["colour"][:5000])

def failure(of):
    try:
        of()
    except DataError as error:
        return str(error)

(folder / "a" / "5.jpg").touch()
files = folders.labelled(folder, ["a"])
train, test = (images.Pictures(files, 64, at_random) for at_random in (True, False))
(folder / "a" / "5.jpg").unlink()
wanted = [(3, 1), (3, 0), (4, 1), (0, 3)] * 5
batch = torch.stack([train[0, number][0] for number in range(4)])
ready = images.on_device(batch, torch.device("cpu"), torch.channels_last)
mean, deviation = (torch.tensor(of).view(3, 1, 1) for of in (images.MEAN, images.DEVIATION))
expected = (batch.permute(0, 3, 1, 2) / 255 - mean) / deviation
print(json.dumps({
    "again": torch.equal(train[3, 1][0], train[3, 1][0]),
    "other epoch": torch.equal(train[3, 1][0], train[4, 1][0]),
    "other index": torch.equal(train[3, 1][0], train[3, 2][0]),
    "test": torch.equal(test[0, 1][0], test[1, 2][0]),
    "batch": all(torch.equal(image, train[at][0])
                 for at, (image, _) in zip(wanted, train.__getitems__(wanted))),
    "broken": failure(lambda: train.__getitems__([(0, 3), (0, 4)])),
    "missing": failure(lambda: train[0, 5]),
    "error": float((ready - expected).abs().max()),
    "channels last": ready.is_contiguous(memory_format=torch.channels_last),
}))
"""
SHARD = """
from pathlib import Path
import recordio
from jpegs import JpegImage
from readers import Shards
folder = Path(sys.argv[2])
cut = JpegImage("key", "a/1.jpg", 0, "a", pictures["colour"][:5000], 375, 500)
recordio.write(folder / "train-00000-of-00001.rec", iter([cut]))
try:
    print(json.dumps(list(Shards(str(folder)))))
except DataError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture(scope="module")
def told(preloaded: Callable[..., Path]) -> Callable[..., Any]:
    """Run a program on the pictures; return what it printed."""

    def run(program: str, *arguments: Path) -> Any:
        argv = [str(preloaded("pytorch", "torch")), "-B", "-c", PICTURES + program, str(DATA)]
        done = subprocess.run(
            [*argv, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="module")
def differences(told: Callable[..., Any]) -> dict[str, float]:
    return dict(told(COMPARE))


@pytest.mark.parametrize("decoder", ["fast", "pillow"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_as_pillow_cuts_it_out_of_the_whole(
    differences: dict[str, float], kind: str, decoder: str
) -> None:
    assert differences[f"{kind} {decoder}"] < AS_PILLOW


@pytest.mark.parametrize("decoder", ["fast", "pillow"])
@pytest.mark.parametrize("kind", ["large", "huge"])
def test_a_part_that_the_decoder_made_smaller_is_almost_so(
    differences: dict[str, float], kind: str, decoder: str
) -> None:
    assert differences[f"{kind} {decoder}"] < AS_PILLOW_SHRUNK


def test_a_broken_picture_is_an_error_that_says_so(told: Callable[..., Any]) -> None:
    said = told(BREAK)
    assert said["whole"] == [224, 224, 3]
    assert said["half"] == said["cut"]
    assert said["half"].startswith("is truncated: ")
    # Some cameras put a film behind the picture.
    assert said["film"] == [224, 224, 3]
    assert said["empty"] == said["text"]
    assert said["empty"].startswith("is not a picture")
    assert "no size in its header" in said["head"]
    assert "no size in its header" in said["flat"]
    assert "not supported" in said["arithmetic"]
    # Damage in the middle is grey patches or an error, and nothing else.
    assert {type(one) for one in said["damaged"]} == {list, str}


def test_a_folders_pictures_follow_from_epoch_and_index(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    said = told(FOLDERS, tmp_path)
    assert said["again"]
    assert not said["other epoch"]
    assert not said["other index"]
    assert said["test"]
    assert said["batch"]
    assert "a/5.jpg cannot be read: [Errno 2]" in said["missing"]
    assert "a/4.jpg cannot be read: is truncated" in said["broken"]
    assert said["error"] < 1e-5
    assert said["channels last"]


def test_a_broken_picture_in_a_shard_is_named_by_the_shard(
    told: Callable[..., Any], preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    source, folder = tmp_path / "source", tmp_path / "shards"
    (source / "a").mkdir(parents=True)
    told('open(sys.argv[2], "wb").write(pictures["odd"]); print(0)', source / "a" / "1.jpg")
    argv = [
        str(preloaded("pytorch", "torch")),
        "-B",
        str(DATA / "prepare.py"),
        "write",
        str(source),
    ]
    options = ["--shards", "1", "--format", "recordio"]
    subprocess.run([*argv, str(folder), *options], check=True, capture_output=True, timeout=60)
    said = told(SHARD, folder)
    assert "train-00000-of-00001.rec is truncated: " in said
