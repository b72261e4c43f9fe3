"""A data set as shards: planned, written on all cores, resumed, read back.

A folder of shards has ``plan.json`` from the beginning, ``finished.jsonl`` while it is written and
``manifest.json`` when it is whole. Each shard is written under a temporary name and renamed, so
a file with a shard's name is a whole shard.
"""

import hashlib
import json
import multiprocessing
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import jpegs
import recordio
import tarshards
import tfrecord
from jpegs import JpegImage, JpegSource, PictureError

FORMATS: dict[str, Any] = {"tfrecord": tfrecord, "recordio": recordio, "webdataset": tarshards}
PLAN, FINISHED, MANIFEST = "plan.json", "finished.jsonl", "manifest.json"
SCHEMA_VERSION = 1  # of these three files, said in the first
OVERHEAD_BYTES = 2048  # of a record, at most: names, lengths, checksums, tar's blocks
SAMPLE = 8  # pictures that are enlarged to learn how large the others become
BLOCK_BYTES = 1 << 20
READ_ERRORS = (
    OSError,
    ValueError,
    tfrecord.TfrecordError,
    recordio.RecordError,
    tarshards.TarError,
)
"""What reading a shard raises where it is damaged."""


class PrepareError(Exception):
    """The shards cannot be written or are not what was written; the text says what to do."""


@dataclass(frozen=True)
class ShardPlan:
    """What is written; the same plan always gives the same bytes."""

    source: str
    destination: str
    format: str = "tfrecord"
    shards: int = 1024  # the papers' number, before copies
    copies: int = 1  # of each shard; the papers' is 150
    enlarge: int = 1  # times in height and width; the papers' is 3
    name: str = "train"
    first_label: int = 0
    seed: int = 1

    def file_names(self, shard: int, copy: int = 0) -> list[str]:
        """Name the shard's files, the pictures' first; RecordIO has an index beside it."""
        number, total = copy * self.shards + shard, self.shards * self.copies
        stem = f"{self.name}-{number:05d}-of-{total:05d}"
        return [stem + suffix for suffix in FORMATS[self.format].SUFFIXES]


@dataclass(frozen=True)
class Shard:
    """A finished shard; ``files`` are names and SHA-256 of its first copy's files."""

    number: int
    images: int
    bytes: int  # of all copies
    files: dict[str, str]
    faults: dict[str, str]  # files that were left out, and why


@dataclass(frozen=True)
class Work:
    """What one process needs to write one shard."""

    plan: ShardPlan
    number: int
    classes: tuple[str, ...]
    sources: tuple[JpegSource, ...]
    strict: bool


Told = Callable[[Shard], None]


def nothing(shard: Shard) -> None:
    """Tell nobody."""


def divide(plan: ShardPlan, strict: bool = False) -> list[Work]:
    """Divide the files over the shards, in an order that the seed decides."""
    if plan.format not in FORMATS:
        raise PrepareError(f"format {plan.format} is not one of {', '.join(FORMATS)}")
    if min(plan.shards, plan.copies, plan.enlarge) < 1:
        raise PrepareError("shards, copies and enlarge must be 1 or more")
    if not plan.name.replace("-", "").replace("_", "").isalnum():
        raise PrepareError(f"name {plan.name!r} may have only letters, digits, - and _")
    if not Path(plan.source).is_dir():
        raise PrepareError(f"{plan.source} is not a folder")
    classes, sources = jpegs.find(Path(plan.source), plan.first_label)
    if plan.shards > len(sources):
        raise PrepareError(
            f"{plan.source} has {len(sources)} files in class folders, fewer than "
            f"{plan.shards} shards: choose fewer shards"
        )
    random.Random(plan.seed).shuffle(sources)  # noqa: S311
    return [
        Work(plan, number, tuple(classes), tuple(sources[number :: plan.shards]), strict)
        for number in range(plan.shards)
    ]


def expected_bytes(works: list[Work]) -> int:
    """Estimate what all copies of all shards take; a sample tells what enlarging costs."""
    plan = works[0].plan
    sources = [source for work in works for source in work.sources]
    growth = growth_of(plan, sources[:: max(1, len(sources) // SAMPLE)])
    one_copy = sum(source.bytes for source in sources) * growth + len(sources) * OVERHEAD_BYTES
    return int(one_copy) * plan.copies


def growth_of(plan: ShardPlan, sample: list[JpegSource]) -> float:
    """Return bytes after enlarging over bytes before, of a few pictures."""
    if plan.enlarge == 1:
        return 1.0
    before = after = 0
    for source in sample:
        try:
            encoded = Path(plan.source, source.path).read_bytes()
            jpegs.size_of(encoded)
            encoded = jpegs.as_jpeg(encoded)
        except (OSError, PictureError):
            continue
        before += len(encoded)
        after += len(jpegs.enlarged(encoded, plan.enlarge))
    return after / before if before else float(plan.enlarge**2)


def prepare(
    works: list[Work], overwrite: bool = False, workers: int = 0, told: Told = nothing
) -> None:
    """Write the shards that are not there yet, then the manifest.

    ``told`` is called with each finished shard, those of an earlier run first. Raises PrepareError
    where the folder has something else, where there is no room and, if strict, at a bad file.
    """
    plan = works[0].plan
    folder = Path(plan.destination)
    if overwrite and (folder / PLAN).exists():  # before anything is lost
        there = sum(path.stat().st_size for path in shard_files(folder))
        check_room(folder, expected_bytes(works) - there)
    finished = open_folder(folder, digest(works), overwrite)
    for shard in finished.values():
        told(shard)
    missing = [work for work in works if work.number not in finished]
    if not missing:
        return finish(folder, finished)
    check_room(folder, expected_bytes(missing))
    workers = workers or len(os.sched_getaffinity(0))
    with (
        (folder / FINISHED).open("a") as record,
        ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), end_with_parent) as pool,
    ):
        running = [pool.submit(write, work) for work in missing]
        for shard in results(pool, running):
            finished[shard.number] = shard
            record.write(json.dumps(asdict(shard)) + "\n")
            record.flush()
            told(shard)
    return finish(folder, finished)


def end_with_parent() -> None:
    """End this process when the one that started it is gone; killed, it could not tell us."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def results(pool: ProcessPoolExecutor, running: list[Future[Shard]]) -> Iterator[Shard]:
    """Yield shards as they are finished; at the first failure, begin no more."""
    try:
        for done in as_completed(running):
            yield done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def digest(works: list[Work]) -> dict[str, Any]:
    """Describe all that decides the bytes: the plan, the files with their sizes, the classes."""
    plan = {key: value for key, value in asdict(works[0].plan).items() if key != "destination"}
    plan = {"schema": SCHEMA_VERSION, **plan}
    files = json.dumps([[asdict(source) for source in work.sources] for work in works])
    sums = {"files_sha256": hashlib.sha256(files.encode()).hexdigest()}
    return {**plan, **sums, "classes": list(works[0].classes)}


def open_folder(folder: Path, plan: dict[str, Any], overwrite: bool) -> dict[int, Shard]:
    """Make the folder, or find what an earlier run of the same plan finished in it."""
    folder.mkdir(parents=True, exist_ok=True)
    there = folder / PLAN
    same = there.exists() and read_plan(there) == plan
    if any(folder.iterdir()) and (overwrite or not same):
        if not overwrite:
            raise PrepareError(
                f"{folder} is not empty, and not from this plan: choose another folder, or "
                "set overwrite to replace the shards in it"
            )
        remove_shards(folder)
    for left in folder.glob(".*.partial.*"):
        left.unlink()
    replace(there, json.dumps(plan, indent=1))
    return finished_in(folder)


def remove_shards(folder: Path) -> None:
    """Remove what was written here before; a file of anybody else is refused, not removed."""
    if not (folder / PLAN).exists():
        raise PrepareError(f"{folder} has files but no {PLAN}: only shards are overwritten")
    for path in [*shard_files(folder), *map(folder.joinpath, (FINISHED, MANIFEST, PLAN))]:
        path.unlink(missing_ok=True)


def shard_files(folder: Path) -> list[Path]:
    """Return the shards that are in a folder, whole or not all of them."""
    name = read_plan(folder / PLAN)["name"]
    return list(folder.glob(f"{name}-*-of-*"))


def finished_in(folder: Path) -> dict[int, Shard]:
    """Return the finished shards of a folder whose files are there, by number."""
    record = folder / FINISHED
    lines = record.read_text().splitlines(keepends=True) if record.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) != len(lines):  # it was ended while it wrote the last one
        replace(record, "".join(whole))
    shards = manifest(folder) if (folder / MANIFEST).exists() else []
    shards += [Shard(**json.loads(line)) for line in whole]
    return {
        shard.number: shard
        for shard in shards
        if all((folder / name).exists() for name in shard.files)
    }


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raise PrepareError where the bytes do not fit onto the file system."""
    free = shutil.disk_usage(folder).free
    if needed_bytes > free:
        raise PrepareError(
            f"about {needed_bytes / 1e9:.1f} GB are needed, {folder} has {free / 1e9:.1f} GB "
            "free: write fewer copies, or somewhere else"
        )


def write(work: Work) -> Shard:
    """Write one shard and its copies; what is no picture is left out and named."""
    plan, faults = work.plan, dict[str, str]()
    folder = Path(plan.destination)
    mark = f".{os.getpid()}.partial."
    first = plan.file_names(work.number)
    images = FORMATS[plan.format].write(folder / (mark + first[0]), pictures(work, faults))
    sums = {name: sha256(folder / (mark + name)) for name in first}
    size = sum((folder / (mark + name)).stat().st_size for name in first)
    for copy in range(plan.copies - 1, -1, -1):  # the first copy last: it is what is copied
        # The index before the pictures: a shard without its index would look whole.
        for name, original in reversed(
            list(zip(plan.file_names(work.number, copy), first, strict=True))
        ):
            if copy:
                shutil.copyfile(folder / (mark + original), folder / (mark + name))
            move(folder / (mark + name), folder / name)
    return Shard(work.number, images, size * plan.copies, sums, faults)


def pictures(work: Work, faults: dict[str, str]) -> Iterator[JpegImage]:
    """Yield the pictures of one shard; name bad files in ``faults``, or raise if strict."""
    plan = work.plan
    for number, source in enumerate(work.sources):
        try:
            encoded = Path(plan.source, source.path).read_bytes()
            height, width = jpegs.size_of(encoded)
            encoded = jpegs.as_jpeg(encoded)
        except (OSError, PictureError) as error:
            if work.strict:
                raise PrepareError(f"{source.path} {error}") from error
            faults[source.path] = str(error)
            continue
        if plan.enlarge > 1:
            encoded = jpegs.enlarged(encoded, plan.enlarge)
        name = work.classes[source.label - plan.first_label]
        yield JpegImage(
            key=f"{work.number:05d}-{number:07d}",
            path=source.path,
            label=source.label,
            class_name=name,
            encoded=encoded,
            height=height * plan.enlarge,
            width=width * plan.enlarge,
        )


def move(partial: Path, final: Path) -> None:
    """Give a file its name once its bytes are on the disk."""
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.rename(final)


def replace(path: Path, text: str) -> None:
    """Write a small file so that there is always either the old one or the new."""
    partial = path.with_name(f".{os.getpid()}.partial.{path.name}")
    partial.write_text(text)
    partial.replace(path)


def sha256(path: Path) -> str:
    """Return the checksum of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def finish(folder: Path, finished: dict[int, Shard]) -> None:
    """Write the manifest: from now on the folder is whole."""
    shards = [asdict(finished[number]) for number in sorted(finished)]
    replace(folder / MANIFEST, json.dumps(shards, indent=1))
    (folder / FINISHED).unlink(missing_ok=True)


def plan_of(folder: Path) -> tuple[ShardPlan, list[str]]:
    """Return what a folder of shards was written by, and the names of its classes."""
    if not (folder / PLAN).exists():
        raise PrepareError(f"{folder} has no {PLAN}: it has no shards that prepare.py wrote")
    told = read_plan(folder / PLAN)
    plan = {field.name: told[field.name] for field in fields(ShardPlan) if field.name in told}
    return ShardPlan(**plan, destination=str(folder)), told["classes"]


def read_plan(file: Path) -> dict[str, Any]:
    """Read what shards were written by; raise PrepareError where newer programs wrote it.

    One of before there were versions has the first.
    """
    told = {"schema": 1, **json.loads(file.read_text())}
    if told["schema"] > SCHEMA_VERSION:
        raise PrepareError(
            f"{file} has schema {told['schema']}, and this program reads up to {SCHEMA_VERSION}: "
            "open a new copy of the template"
        )
    return told


def manifest(folder: Path) -> list[Shard]:
    """Return the shards of a folder that is whole; raise PrepareError where it is not."""
    if not (folder / MANIFEST).exists():
        raise PrepareError(f"{folder} has no {MANIFEST}: it is not finished; prepare it again")
    return [Shard(**shard) for shard in json.loads((folder / MANIFEST).read_text())]


def verify(folder: Path, told: Told = nothing) -> int:
    """Read every copy of every shard back; return the number of images, or raise PrepareError.

    Compared are the checksums of files, those of the format, the counts, and whether each record
    begins as JPEG does.
    """
    shards = manifest(folder)
    names, _ = plan_of(folder)
    images = 0
    for shard in shards:
        for copy in range(names.copies):
            images += verify_copy(folder, names, shard, copy)
        told(shard)
    return images


def verify_copy(folder: Path, plan: ShardPlan, shard: Shard, copy: int) -> int:
    """Read one copy of a shard back; return the number of its images."""
    names = plan.file_names(shard.number, copy)
    try:
        read = FORMATS[plan.format].read(folder / names[0])
        begins = [encoded.startswith(jpegs.FIRST_BYTES) for _, encoded in read]
        sums = [sha256(folder / name) for name in names]
    except READ_ERRORS as error:
        raise PrepareError(f"{names[0]} cannot be read back: {error}") from error
    if len(begins) != shard.images or not all(begins):
        raise PrepareError(
            f"{names[0]} does not have the {shard.images} pictures that were written"
        )
    if sums != list(shard.files.values()):
        raise PrepareError(f"{' or '.join(names)} is not what was written")
    return len(begins)
