"""Where TensorFlow's images come from: made up, MNIST's digits, folders, or TFRecord shards.

Shapes are (n, height, width, channels). What a rank sees in a step follows from the seed, the
epoch and the step alone, so that a training that is resumed goes on with the images that came next.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from sampler import SYNTHETIC, Sampler, mount_of

# digits.py is among the templates for data, beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "data")]
import broken
import digits
import folders
import jpegs
from cuts import CENTRE_SHARE, DEVIATION, MEAN, RATIO, SHARE
from digits import DataError

SHUFFLED = 2000  # images of shards that wait to be drawn from
# What prepare.py writes beside its shards; its own modules need what TensorFlow's module lacks.
PLAN, MANIFEST = "plan.json", "manifest.json"
FILES_AT_ONCE = 8  # shards that a process reads from in turn


@dataclass(frozen=True)
class TensorflowImages:
    """A data set in two parts."""

    count: int
    size: int
    classes: int
    channels: int
    train: Callable[[Sampler, int, int], tf.data.Dataset]
    """Gives a rank's batches of an epoch, from a step on."""
    test: Callable[[int, int, int], tf.data.Dataset] | None
    """Gives the batches of a rank of so many ranks, with so many images each."""
    files: list[str] = field(default_factory=list)
    """Of pictures to train on."""
    test_files: list[str] = field(default_factory=list)
    digest: str = ""
    """A SHA-256 by which other images are told; none of made-up ones."""
    private_threads: int = 0
    """That read and decode, and do nothing else; 0: TensorFlow's, which all of it shares."""

    def batches(self, sampler: Sampler, epoch: int, first: int, steps: int) -> Iterator[Any]:
        """Give a rank's next batches of an epoch; raise DataError for a file that is broken."""
        try:
            yield from self._in_threads(self.train(sampler, epoch, first).take(steps))
        except tf.errors.OpError as error:
            order = indexes(sampler, epoch, first).ravel() if self.files else ()
            raise broken.named((self.files[at] for at in order), error.message) from error

    def _in_threads(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        if not self.private_threads:
            return batches
        options = tf.data.Options()
        options.threading.private_threadpool_size = self.private_threads
        return batches.with_options(options)

    def test_batches(self, rank: int, ranks: int, batch: int) -> Iterator[Any]:
        """Give a rank's images to test with, each once; raise DataError as ``batches`` does."""
        assert self.test is not None
        try:
            yield from self.test(rank, ranks, batch)
        except tf.errors.OpError as error:
            raise broken.named(self.test_files[rank::ranks], error.message) from error


def open_images(
    data: str,
    size: int,
    made_up: int,
    mounts: Sequence[str],
    rank: int,
    broken_in: Path | None = None,
) -> TensorflowImages:
    """Open ``synthetic`` or a folder: MNIST's files, folders of pictures, or prepare.py's shards.

    Pictures are in ``train/CLASS`` and ``val/CLASS``, shards in the folder or in its ``train`` and
    ``val``. Given a folder for the list of them, pictures that are broken are left out.

    ``size`` is the height and width in pixels, ``made_up`` the number of
    synthetic images. Where there are several ``mounts`` of the same storage, a rank reads from the
    one that its number falls to; ``data`` is then below each mount.
    """
    if data == SYNTHETIC:
        return TensorflowImages(made_up, size, 1000, 3, synthetic(size), None)
    folder = Path(mount_of(rank, mounts), data).expanduser()
    if (folder / "train-images-idx3-ubyte.gz").exists():
        return mnist(folder)
    for place in (folder, folder / "train"):
        if (place / PLAN).exists():
            return shards(place, folder / "val", size)
    if (folder / "train").is_dir():
        return picture_folders(folder, size, rank == 0, broken_in)
    raise DataError(
        f"{folder} has neither MNIST's files, nor shards of prepare.py, nor a folder train with "
        "one folder for each class. Set data to a folder that has one of these, or to 'synthetic'."
    )


def synthetic(size: int) -> Callable[[Sampler, int, int], tf.data.Dataset]:
    """Make noise, the same in every step: it measures all but the reading."""

    def train(sampler: Sampler, epoch: int, first: int) -> tf.data.Dataset:
        # Bytes, as of real images: a GPU is sent a quarter of what numbers would be.
        shape = (sampler.batch, size, size, 3)
        drawn = tf.random.stateless_uniform(shape, (0, 0), 0, 256, tf.int32)
        pixels = tf.cast(drawn, tf.uint8)
        batches = tf.data.Dataset.from_tensor_slices(indexes(sampler, epoch, first))
        return batches.map(lambda at: (pixels, at % 1000))

    return train


def on_device(pixels: tf.Tensor) -> tf.Tensor:
    """Bring bytes around 0, where they are computed with; numbers are left as they are."""
    if pixels.dtype != tf.uint8:
        return pixels
    return around_0(tf.cast(pixels, tf.float32))


def indexes(sampler: Sampler, epoch: int, first: int) -> np.ndarray:
    """Return which images are a rank's: a row for each step."""
    rows = [[index for _, index in step] for step in sampler.epoch(epoch, first)]
    return np.array(rows, np.int64).reshape(-1, sampler.batch)


def mnist(folder: Path) -> TensorflowImages:
    """Open MNIST's digits, 28x28, one channel with values from 0 to 1."""
    parts = [(tf.constant(of.images), tf.constant(of.labels)) for of in digits.load(folder)]

    def chosen(part: int, batches: tf.data.Dataset) -> tf.data.Dataset:
        images, labels = parts[part]
        return batches.map(
            lambda at: (tf.gather(images, at), tf.cast(tf.gather(labels, at), tf.int64))
        ).prefetch(2)

    def train(sampler: Sampler, epoch: int, first: int) -> tf.data.Dataset:
        return chosen(0, tf.data.Dataset.from_tensor_slices(indexes(sampler, epoch, first)))

    def test(rank: int, ranks: int, batch: int) -> tf.data.Dataset:
        mine = tf.data.Dataset.range(rank, len(parts[1][1]), ranks)
        return chosen(1, mine.batch(batch))

    digest = digits.digest(folder)
    return TensorflowImages(len(parts[0][1]), 28, 10, 1, train, test, digest=digest)


def picture_folders(
    folder: Path, size: int, is_first: bool, broken_in: Path | None
) -> TensorflowImages:
    """Open ``train/CLASS`` and, where it is there, ``val/CLASS``."""
    found = folders.opened(folder)
    to_train, to_test = found.train, found.test
    if broken_in:
        to_train = broken.whole(to_train, broken_in / broken.TRAIN, is_first)
        to_test = to_test and broken.whole(to_test, broken_in / broken.TEST, is_first)
    paths, labels = divided(to_train)

    def train(sampler: Sampler, epoch: int, first: int) -> tf.data.Dataset:
        order = indexes(sampler, epoch, first).ravel()
        seed = sampler.seed * 1_000_003 + epoch
        parts = (tf.gather(paths, order), tf.gather(labels, order), order)

        def one(path: tf.Tensor, label: tf.Tensor, index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return random_part(tf.io.read_file(path), size, (seed, index)), label

        return ahead(tf.data.Dataset.from_tensor_slices(parts), one, sampler.batch)

    def test(rank: int, ranks: int, batch: int) -> tf.data.Dataset:
        assert to_test
        mine = tf.data.Dataset.from_tensor_slices(divided(to_test)).shard(ranks, rank)
        return ahead(mine, lambda path, label: (centre(tf.io.read_file(path), size), label), batch)

    return TensorflowImages(
        len(labels),
        size,
        len(found.names),
        3,
        train,
        test if to_test else None,
        paths,
        divided(to_test or [])[0],
        found.digest(),
    )


def divided(files: Sequence[folders.Labelled]) -> tuple[list[str], np.ndarray]:
    """Return the paths of files, and the numbers of their classes."""
    return [path for path, _ in files], np.array([label for _, label in files], np.int64)


def shards(folder: Path, to_test: Path, size: int) -> TensorflowImages:
    """Open what ``prepare.py`` wrote into a folder, and into one to test with where that is."""
    found = shards_in(folder)
    files = found.files
    has_test = (to_test / PLAN).exists()
    if has_test and shards_in(to_test).classes != found.classes:
        raise DataError(
            f"{to_test} has different classes from {folder}: their numbers would not match"
        )

    def train(sampler: Sampler, epoch: int, first: int) -> tf.data.Dataset:
        if sampler.ranks > len(files):
            raise DataError(f"{sampler.ranks} processes for only {len(files)} shards: prepare more")
        draw = np.random.default_rng((sampler.seed, epoch))
        mine = draw.permutation(files)[sampler.rank :: sampler.ranks].tolist()
        records = tf.data.Dataset.from_tensor_slices(mine).interleave(
            tf.data.TFRecordDataset, cycle_length=FILES_AT_ONCE, deterministic=True
        )
        drawn = records.shuffle(SHUFFLED, seed=sampler.seed + epoch, reshuffle_each_iteration=False)
        # A rank with fewer images than the others begins its shards again.
        seed = (sampler.seed * 1_000_003 + epoch) * sampler.ranks + sampler.rank
        numbered = drawn.repeat().enumerate().skip(first * sampler.batch)

        def one(number: tf.Tensor, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            encoded, label = fields(record, found.first_label)
            return random_part(encoded, size, (seed, number)), label

        return ahead(numbered.take((sampler.steps - first) * sampler.batch), one, sampler.batch)

    def test(rank: int, ranks: int, batch: int) -> tf.data.Dataset:
        those = shards_in(to_test)

        def one(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            encoded, label = fields(record, those.first_label)
            return centre(encoded, size), label

        return ahead(tf.data.TFRecordDataset(those.files[rank::ranks]), one, batch)

    digest = folders.digest_of_shards(folder, to_test)
    tested = test if has_test else None
    classes = len(found.classes)
    return TensorflowImages(found.images, size, classes, 3, train, tested, digest=digest)


@dataclass(frozen=True)
class TfrecordShards:
    """What a folder of shards holds."""

    files: list[str]
    images: int
    classes: list[str]
    first_label: int


def shards_in(folder: Path) -> TfrecordShards:
    """Read what a folder's plan and list of shards say."""
    plan = json.loads((folder / PLAN).read_text())
    if plan["format"] != "tfrecord":
        raise DataError(f"{folder} has {plan['format']} shards; TensorFlow reads tfrecord")
    if not (folder / MANIFEST).exists():
        raise DataError(f"{folder} has no {MANIFEST}: it is not finished; prepare it again")
    parts = json.loads((folder / MANIFEST).read_text())
    total = plan["shards"] * plan["copies"]
    names = [f"{plan['name']}-{number:05d}-of-{total:05d}" for number in range(total)]
    images = sum(part["images"] for part in parts) * plan["copies"]
    files = [str(folder / name) for name in names]
    return TfrecordShards(files, images, list(plan["classes"]), int(plan["first_label"]))


def fields(record: tf.Tensor, first_label: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the JPEG data and the label of a record."""
    kinds = {"image/encoded": tf.string, "image/class/label": tf.int64}
    wanted = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
    found = tf.io.parse_single_example(record, wanted)
    return found["image/encoded"], found["image/class/label"] - first_label


def ahead(
    parts: tf.data.Dataset, one: Callable[..., tuple[tf.Tensor, tf.Tensor]], batch: int
) -> tf.data.Dataset:
    """Read and decode in threads, ahead of their use, in the order that was given."""
    read = parts.map(one, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return read.batch(batch).prefetch(4)


def random_part(encoded: tf.Tensor, size: int, seed: tuple[object, object]) -> tf.Tensor:
    """Decode a part of an image, drawn with the seed, and flip every second one."""
    seed = tf.stack([tf.cast(number, tf.int64) for number in seed])

    def box(extent: tf.Tensor) -> tf.Tensor:
        begin, sides, _ = tf.image.stateless_sample_distorted_bounding_box(
            extent,
            bounding_boxes=tf.zeros([1, 0, 4]),
            seed=seed,
            min_object_covered=0.0,
            aspect_ratio_range=RATIO,
            area_range=SHARE,
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        return tf.concat([begin[:2], sides[:2]], 0)

    pixels = part_of(encoded, box)
    return normalised(tf.image.stateless_random_flip_left_right(pixels, seed + 1), size)


def centre(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """Decode the square in the middle of an image."""

    def box(extent: tf.Tensor) -> tf.Tensor:
        side = tf.cast(tf.cast(tf.reduce_min(extent[:2]), tf.float32) * CENTRE_SHARE, tf.int32)
        return tf.concat([(extent[:2] - side) // 2, [side, side]], 0)

    return normalised(part_of(encoded, box), size)


def part_of(encoded: tf.Tensor, box: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Decode the part of an image that ``box`` says: top, left, height, width, of its shape.

    Of JPEG just that part is decoded; of all other kinds Pillow decodes the whole.
    """

    def of_jpeg() -> tf.Tensor:
        window = box(tf.io.extract_jpeg_shape(encoded))
        return tf.image.decode_and_crop_jpeg(encoded, window, channels=3)

    def of_others() -> tf.Tensor:
        whole = tf.numpy_function(jpegs.decoded, [encoded], tf.uint8, stateful=False)
        top, left, height, width = tf.unstack(box(tf.shape(whole)), num=4)
        return whole[top : top + height, left : left + width]

    pixels = tf.cond(tf.io.is_jpeg(encoded), of_jpeg, of_others)
    pixels.set_shape((None, None, 3))
    return pixels


def normalised(pixels: tf.Tensor, size: int) -> tf.Tensor:
    """Bring an image to its size, and its values around 0."""
    pixels = tf.image.resize(pixels, (size, size))
    pixels.set_shape((size, size, 3))
    return around_0(pixels)


def around_0(pixels: tf.Tensor) -> tf.Tensor:
    """Bring values from 0 to 255 around 0."""
    return (pixels / 255 - tf.constant(MEAN)) / tf.constant(DEVIATION)
