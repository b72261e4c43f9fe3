#!/usr/bin/env python
"""Measure how fast a training's images are read and decoded, without the training.

    python reading.py --results jpeg --data FOLDER      folder with train/CLASS/*.jpg
    python reading.py --results tfrecord --data SHARDS  prepare.py's shards: TFRecord, say

The same images in two formats, or on two storages, are compared by compare.py. Reading and decoding
are the training's own; what a GPU would do with the images is left out.
"""

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from filesystem import caches, data_files, fs_cache
from measurement import machine, repeats
from measurement.choices import SettingError, whole
from measurement.interruption import Interrupted, stop_in_order
from measurement.result import Result, ResultError
from measurement.site_program import SiteProgramError

# images.py and record.py are beside this folder.
sys.path += [str(Path(__file__).resolve().parent.parent / "distributed")]
import images
from record import run
from sampler import Sampler


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0] if __doc__ else "",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--results", required=True, help="folder for the results")
    add("--data", required=True, help="folder of JPEG folders, or of shards")
    add("--size", type=int, default=224, help="pixels, height and width of what is cut out")
    add("--batch", type=int, default=64, help="images in a batch")
    add("--workers", type=int, default=-1, help="reading processes; -1: one less than cores")
    add("--images", type=int, default=12_800, help="images that count, at least, in each run")
    add("--warmup", type=int, default=1_280, help="images before them")
    add("--repeats", type=int, default=5, help="runs, of different images if there are enough")
    add("--flush-nas", default="", help=caches.FLUSH_HELP.format("run"))
    add("--caches-program", default=caches.DROP, help="what drops this host's caches, by sudo")
    return parser.parse_args()


def workers_of(s: argparse.Namespace) -> int:
    """Return the number of reading processes."""
    return max(0, len(os.sched_getaffinity(0)) - 1) if s.workers < 0 else int(s.workers)


def steps_of(s: argparse.Namespace, there: int) -> tuple[int, int]:
    """Return how many batches do not count, and how many do. Raises `SettingError`."""
    for name in ("size", "batch", "images", "repeats"):
        whole(name, getattr(s, name))
    warm, counted = -(-s.warmup // s.batch), -(-s.images // s.batch)
    if (workers := workers_of(s)) > 1:
        # All begin together: their first batches come at once, and so do those after them.
        warm, counted = max(warm, workers), max(counted, 8 * workers)
    if (warm + counted) * s.batch > there:
        raise SettingError(
            f"data has {there:,} images, and a run takes {(warm + counted) * s.batch:,}: choose "
            "fewer images, a smaller warmup or fewer workers"
        )
    return warm, counted


def measure(s: argparse.Namespace, data: Any, number: int) -> dict[str, Any]:
    """Read a run's images, and say how many came a second after the first of them."""
    warm, counted = steps_of(s, len(data.train))
    dropped = caches.drop(s.caches_program)
    flushed = caches.flush_nas(s.flush_nas)
    sampler = Sampler(len(data.train), s.batch, 0, 1, number)
    read = images.batches(data.train, sampler, number, range(warm + counted), workers_of(s), False)
    since, seen = time.perf_counter(), 0
    for step, (_, labels) in enumerate(read, 1):
        if step == warm:
            since, seen = time.perf_counter(), 0
        else:
            seen += len(labels)
    seconds = time.perf_counter() - since
    return {
        "run": number,
        "images": seen,
        "seconds": seconds,
        "images_per_second": seen / seconds,
        "caches_dropped": dropped,
        "fs_cache": fs_cache.of_folders([Path(s.data)]),
        "nas_flushed_by": flushed,
    }


def main(s: argparse.Namespace) -> None:
    """Measure: the story from top to bottom."""
    results, folder = (Path(place).expanduser().absolute() for place in (s.results, s.data))
    data = images.open_images(str(folder), s.size, 0, [], 0, 1, 1)
    steps_of(s, len(data.train))
    workers = workers_of(s)
    chosen = {name: value for name, value in vars(s).items() if name != "results"}
    result = Result(results, "reading", {**chosen, "workers": workers}, s.repeats)
    (results / "error.txt").unlink(missing_ok=True)
    kind = type(data.train).__name__.lower()
    files = data_files.files_of(data.train)
    if not files:
        raise SettingError(
            "data is neither JPEG folders nor shards: it is only read before the runs"
        )
    hits = caches.hit_rate(caches.memory_bytes(), data_files.bytes_of(files))
    print(f"{len(data.train):,} images, {kind}; {workers} reading processes", flush=True)
    print(f"expected cache hit rate where caches are not dropped: {hits:.1%}", flush=True)
    stop_in_order()
    rows = [
        result.part(f"read and decode, run {number}", partial(measure, s, data, number))
        for number in range(1, s.repeats + 1)
    ]
    figures = {
        "kind": kind,
        **repeats.spread(rows, "images_per_second"),
        "expected_hit_rate": hits,
    }
    result.finish([machine.host()], machine.versions("torch", "pillow"), figures)


if __name__ == "__main__":
    plain = (SettingError, ResultError, images.DataError, SiteProgramError, Interrupted)
    run(main, settings(), *plain)
