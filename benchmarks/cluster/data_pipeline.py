"""Images per second and core, read, decoded and cropped to 224: our readers beside others.

    "$(deploy/venv dev)"/bin/python -m benchmarks.cluster.data_pipeline --folder /var/tmp/pipeline

Each reader is a process of its own on one core. Readers take turns, cold (page cache dropped, which
needs root) and warm. The last line is one JSON object.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "notebook_templates" / "data"
ENVIRONMENTS = Path("/opt/data-scientist-portal/environments")
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
FORMATS = ("tfrecord", "recordio", "webdataset")
SHARDS = 4
BASE = "plain DataLoader, JPEG folder"
LIMIT_SECONDS = 300

MAKE = """
import sys
from pathlib import Path
import numpy as np
from PIL import Image
random = np.random.default_rng(1)
for label in range(10):
    folder = Path(sys.argv[1], str(label))
    folder.mkdir(parents=True)
    for number in range(int(sys.argv[2]) // 10):
        rough = random.integers(0, 256, (188, 250, 3), dtype=np.uint8)
        image = Image.fromarray(rough).resize((500, 375), Image.Resampling.BILINEAR)
        image.save(folder / f"{number}.jpg", quality=92)
"""
OURS = """
import sys, time
import torch
torch.set_num_threads(1)
from torch.utils.data import DataLoader
from readers import Shards
loader = DataLoader(Shards(sys.argv[1], shuffle=100), batch_size=50)
started = time.perf_counter()
count = sum(len(labels) for _, labels in loader)
print(count / (time.perf_counter() - started))
"""
PLAIN = """
import random, sys, time
from pathlib import Path
import numpy as np, torch
torch.set_num_threads(1)
from PIL import Image
from torch.utils.data import DataLoader, Dataset
class Folder(Dataset):
    def __init__(self, folder):
        self.files = sorted(Path(folder).glob("*/*.jpg"))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, at):
        image = Image.open(self.files[at]).convert("RGB")
        width, height = image.size
        area, ratio = width * height * random.uniform(0.08, 1), random.uniform(3 / 4, 4 / 3)
        w, h = min(width, int((area * ratio) ** 0.5)), min(height, int((area / ratio) ** 0.5))
        x, y = random.randint(0, width - w), random.randint(0, height - h)
        image = image.crop((x, y, x + w, y + h)).resize((224, 224), Image.Resampling.BILINEAR)
        return torch.from_numpy(np.array(image)).permute(2, 0, 1), int(self.files[at].parent.name)
loader = DataLoader(Folder(sys.argv[1]), batch_size=50, shuffle=True)
started = time.perf_counter()
count = sum(len(labels) for _, labels in loader)
print(count / (time.perf_counter() - started))
"""
TENSORFLOW = """
import sys, time
from pathlib import Path
import tensorflow as tf
names = {"image/encoded": tf.io.FixedLenFeature([], tf.string),
         "image/class/label": tf.io.FixedLenFeature([], tf.int64)}
def picture(record):
    one = tf.io.parse_single_example(record, names)
    data = one["image/encoded"]
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data), tf.zeros([1, 0, 4]), area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3), use_image_if_no_bounding_boxes=True)
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.decode_and_crop_jpeg(data, window, channels=3)
    return tf.cast(tf.image.resize(image, (224, 224)), tf.uint8), one["image/class/label"]
files = [str(path) for path in sorted(Path(sys.argv[1]).glob("train-*"))]
loader = tf.data.TFRecordDataset(files).shuffle(100).map(picture, num_parallel_calls=1)
loader = loader.batch(50).prefetch(1)
started = time.perf_counter()
count = sum(len(labels) for _, labels in loader)
print(count / (time.perf_counter() - started))
"""


def python_of(framework: str) -> str:
    """Return the newest environment's interpreter."""
    places = ENVIRONMENTS.glob(f"kernel-{framework}-*/bin/python")
    return str(max(places, key=lambda path: path.lstat().st_mtime))


def run(argv: list[str]) -> str:
    """Run one program among our modules; return what it printed."""
    done = subprocess.run(
        argv,
        cwd=DATA,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_SECONDS,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.stdout


def rate(python: str, program: str, folder: Path, cold: bool) -> float:
    """Return images per second of one run on one core."""
    if cold:
        os.sync()
        DROP_CACHES.write_text("3")
    core = str(min(os.sched_getaffinity(0)))
    said = run(["taskset", "--cpu-list", core, python, "-c", program, str(folder)])
    return float(said.splitlines()[-1])


def prepare(folder: Path, images: int) -> None:
    """Make the pictures and their shards, if they are not there."""
    python = python_of("pytorch")
    if not (folder / "jpeg").exists():
        run([python, "-c", MAKE, str(folder / "jpeg"), str(images)])
    for name in FORMATS:
        how = ["--format", name, "--shards", str(SHARDS)]
        run([python, "prepare.py", "write", str(folder / "jpeg"), str(folder / name), *how])


def main() -> None:
    """Measure all readers in turns and print the medians and their ratios to the plain loader."""
    parser = argparse.ArgumentParser(description="images per second and core")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    folder = told.folder.resolve()
    prepare(folder, told.images)
    pytorch = python_of("pytorch")
    readers = {BASE: (pytorch, PLAIN, folder / "jpeg")}
    readers |= {f"ours, {name}": (pytorch, OURS, folder / name) for name in FORMATS}
    readers["tf.data, tfrecord"] = (python_of("tensorflow"), TENSORFLOW, folder / "tfrecord")
    found: dict[str, dict[str, list[float]]] = {
        state: {name: [] for name in readers} for state in ("cold", "warm")
    }
    for _ in range(told.rounds):
        for name, (python, program, where) in readers.items():
            for state in found:
                found[state][name].append(rate(python, program, where, state == "cold"))
                print(name, state, round(found[state][name][-1]), file=sys.stderr)
    medians = {
        state: {name: round(statistics.median(rates), 1) for name, rates in all_rates.items()}
        for state, all_rates in found.items()
    }
    ratios = {
        state: {name: round(one / rates[BASE], 2) for name, one in rates.items()}
        for state, rates in medians.items()
    }
    sizes = [path.stat().st_size for path in (folder / "jpeg").glob("*/*.jpg")]
    result = {
        "benchmark": "data_pipeline",
        "images": len(sizes),
        "mean_image_bytes": round(statistics.mean(sizes)),
        "rounds": told.rounds,
        "cores_used": 1,
        "machine_cores": os.cpu_count(),
        "load_average_1_minute": os.getloadavg()[0],
        "images_per_second": medians,
        "ratio_to_plain": ratios,
        "runs": found,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
