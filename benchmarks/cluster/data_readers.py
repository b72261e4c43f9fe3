"""The programs that `benchmarks.cluster.data_pipeline` compares, each in its framework's Python.

All do the same: read, shuffle a little, decode, cut out a random part (8 to 100 % of the area,
3:4 to 4:3), resize it to 224x224, mirror half of them, and give batches of 50 images of bytes. Each
does it as its own documentation shows, on one core. Their argument is the data's folder.
"""

from dataclasses import dataclass

BATCH, SIZE = 50, 224

END = f"""
import time
count, started, worked = 0, time.perf_counter(), time.process_time()
for pixels, labels in batches():
    count += len(labels)
    assert "uint8" in str(pixels.dtype), pixels.dtype
    assert sorted(pixels.shape[1:]) == [3, {SIZE}, {SIZE}], pixels.shape
print(count, count / (time.perf_counter() - started), count / (time.process_time() - worked))
"""
TORCH = """
import sys
from pathlib import Path
import torch
from torch.utils.data import DataLoader
torch.set_num_threads(1)
"""
OURS_SHARDS = f"""{TORCH}
from readers import Shards
def batches():
    return DataLoader(Shards(sys.argv[1], size={SIZE}, shuffle=100), batch_size={BATCH})
"""
OURS_FILES = f"""{TORCH}
sys.path.insert(0, "../distributed")
import images
folder = Path(sys.argv[1])
files = images.folders.labelled(folder, images.folders.class_names(folder))
data = images.Pictures(files, {SIZE}, True)
def batches():
    steps = images.Sampler(len(data), {BATCH}, rank=0, ranks=1, seed=1).epoch(0)
    return images.loader(data, workers=0, pinned=False, batch_sampler=list(steps))
"""
# What one writes with PyTorch and Pillow alone; torchvision does the same.
PILLOW = f"""{TORCH}
import io, random
import numpy as np
from PIL import Image
def decoded(data):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    width, height = image.size
    area, ratio = width * height * random.uniform(0.08, 1), random.uniform(3 / 4, 4 / 3)
    w, h = min(width, int((area * ratio) ** 0.5)), min(height, int((area / ratio) ** 0.5))
    x, y = random.randint(0, width - w), random.randint(0, height - h)
    image = image.crop((x, y, x + w, y + h)).resize(({SIZE}, {SIZE}), Image.Resampling.BILINEAR)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)
"""
PLAIN = f"""{PILLOW}
class Folder(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted(Path(folder).glob("*/*.jpg"))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, at):
        return decoded(self.files[at].read_bytes()), int(self.files[at].parent.name)
def batches():
    return DataLoader(Folder(sys.argv[1]), batch_size={BATCH}, shuffle=True)
"""
WEBDATASET = f"""{PILLOW}
import webdataset
def batches():
    files = sorted(map(str, Path(sys.argv[1]).glob("*.tar")))
    data = webdataset.WebDataset(files, shardshuffle=False).shuffle(100).to_tuple("jpg", "cls")
    return DataLoader(data.map_tuple(decoded, int), batch_size={BATCH})
"""
TENSORFLOW = f"""
import sys
from pathlib import Path
import tensorflow as tf
folder = Path(sys.argv[1])
names = {{"image/encoded": tf.io.FixedLenFeature([], tf.string),
          "image/class/label": tf.io.FixedLenFeature([], tf.int64)}}
def decoded(data):
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data), tf.zeros([1, 0, 4]), area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3), use_image_if_no_bounding_boxes=True)
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.decode_and_crop_jpeg(data, window, channels=3)
    image = tf.cast(tf.image.resize(image, ({SIZE}, {SIZE})), tf.uint8)
    return tf.image.random_flip_left_right(image)
def of_record(record):
    one = tf.io.parse_single_example(record, names)
    return decoded(one["image/encoded"]), one["image/class/label"]
def of_file(path):
    return decoded(tf.io.read_file(path)), tf.strings.to_number(tf.strings.split(path, "/")[-2])
files = sorted(map(str, folder.glob("train-*-of-0000?")))
if files:
    data = tf.data.TFRecordDataset(files).shuffle(100).map(of_record, num_parallel_calls=1)
else:
    data = tf.data.Dataset.list_files(f"{{folder}}/*/*.jpg").map(of_file, num_parallel_calls=1)
options = tf.data.Options()
options.threading.private_threadpool_size = options.threading.max_intra_op_parallelism = 1
data = data.batch({BATCH}).prefetch(1).with_options(options)
def batches():
    return data
"""
# Without a GPU DALI has no device, and decodes by libjpeg-turbo.
DALI = f"""
import os, subprocess, sys
from pathlib import Path
import numpy as np
from nvidia.dali import fn, pipeline_def, tfrecord
folder = Path(sys.argv[1])
def named(pattern):
    return sorted(map(str, folder.glob(pattern)))
def indexes():
    made = [f"{{name}}.index" for name in named("train-*-of-0000?")]
    for name in made:
        if not Path(name).exists():
            tool = Path(sys.executable).with_name("tfrecord2idx")
            subprocess.run([sys.executable, tool, name.removesuffix(".index"), name], check=True)
    return made
def joined():
    # One index for all files, as if they were one.
    at, lines = 0, []
    for name in named("*.rec"):
        keys = Path(name).with_suffix(".idx").read_text().split()
        lines += [f"{{len(lines) + n}}\\t{{at + int(place)}}" for n, place in enumerate(keys[1::2])]
        at += Path(name).stat().st_size
    (folder / "all.index").write_text("\\n".join(lines) + "\\n")
    return str(folder / "all.index")
def read():
    how = dict(name="reader", random_shuffle=True, initial_fill=100)
    if named("*.tar"):
        return fn.readers.webdataset(paths=named("*.tar"), ext=["jpg", "cls"], **how)
    if named("*.rec"):
        return fn.readers.mxnet(path=named("*.rec"), index_path=joined(), **how)
    if named("train-*"):
        index = indexes()
        number = tfrecord.FixedLenFeature([], tfrecord.int64, 0)
        names = {{"image/encoded": tfrecord.FixedLenFeature([], tfrecord.string, ""),
                  "image/class/label": number}}
        files = [name.removesuffix(".index") for name in index]
        one = fn.readers.tfrecord(path=files, index_path=index, features=names, **how)
        return one["image/encoded"], one["image/class/label"]
    return fn.readers.file(file_root=str(folder), **how)
@pipeline_def(batch_size={BATCH}, num_threads=1, device_id=None, seed=1)
def pipeline():
    data, label = read()
    image = fn.decoders.image_random_crop(
        data, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
    image = fn.resize(image, resize_x={SIZE}, resize_y={SIZE})
    return fn.flip(image, horizontal=fn.random.coin_flip()), label
pipe = pipeline()
pipe.build()
def batches():
    for _ in range(pipe.epoch_size("reader") // {BATCH}):
        images, labels = pipe.run()
        yield np.asarray(images.as_tensor()), labels
"""
MXNET = f"""
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import mxnet
files = ";".join(sorted(map(str, Path(sys.argv[1]).glob("*.rec"))))
def batches():
    data = mxnet.io.ImageRecordIter(
        path_imgrec=files, data_shape=(3, {SIZE}, {SIZE}), batch_size={BATCH}, dtype="uint8",
        preprocess_threads=1, prefetch_buffer=1, shuffle=True, rand_mirror=True,
        random_resized_crop=True, min_random_area=0.08, max_random_area=1.0,
        min_aspect_ratio=3 / 4, max_aspect_ratio=4 / 3, round_batch=False)
    for batch in data:
        batch.data[0].wait_to_read()
        yield batch.data[0], batch.label[0]
"""


@dataclass(frozen=True)
class ImageReader:
    """A program, the environment that runs it and the data it reads."""

    name: str
    environment: str
    program: str
    data: str

    @property
    def title(self) -> str:
        """What the result calls it."""
        return f"{self.name}, {self.data}"


BASE = ImageReader("plain DataLoader", "kernel-pytorch", PLAIN, "jpeg")
READERS = (
    BASE,
    ImageReader("ours", "kernel-pytorch", OURS_FILES, "jpeg"),
    ImageReader("tf.data", "kernel-tensorflow", TENSORFLOW, "jpeg"),
    ImageReader("DALI", "dali", DALI, "jpeg"),
    ImageReader("ours", "kernel-pytorch", OURS_SHARDS, "tfrecord"),
    ImageReader("tf.data", "kernel-tensorflow", TENSORFLOW, "tfrecord"),
    ImageReader("DALI", "dali", DALI, "tfrecord"),
    ImageReader("ours", "kernel-pytorch", OURS_SHARDS, "recordio"),
    ImageReader("MXNet", "kernel-mxnet", MXNET, "recordio"),
    ImageReader("DALI", "dali", DALI, "recordio"),
    ImageReader("ours", "kernel-pytorch", OURS_SHARDS, "webdataset"),
    ImageReader("webdataset", "kernel-pytorch", WEBDATASET, "webdataset"),
    ImageReader("DALI", "dali", DALI, "webdataset"),
)
