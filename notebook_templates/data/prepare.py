"""Turn folders of pictures into TFRecord, RecordIO or WebDataset shards, and read them back.

    python prepare.py write FOLDER/train DESTINATION --format tfrecord --shards 1024
    python prepare.py verify DESTINATION

Run it again after it was stopped: finished shards are kept. Each folder in FOLDER/train is a class.
"""

import argparse
import os
import sys
from pathlib import Path

import shards
from shards import PrepareError, Shard, ShardPlan
from tqdm.auto import tqdm

GB = 1e9
PAPERS = "papers: 3.5 % for a host of 768 GB, 4.5 % for 1 TB of the NAS's cache, of 22.2 TB of data"


def hit_rate(cache_bytes: float, data_bytes: float) -> float:
    """Return the share of reads that a cache is expected to answer, from 0 to 1."""
    return min(1.0, cache_bytes / data_bytes) if data_bytes else 1.0


def host_memory_bytes() -> int:
    """Return the memory of this machine: no page cache is larger."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def describe(plan: ShardPlan, expected_bytes: int, nas_cache_gb: float) -> str:
    """Say what will be written, and how much of it caches can hold."""
    lines = [
        f"{plan.shards * plan.copies} shards of {plan.format} in {plan.destination}, "
        f"about {expected_bytes / GB:.3f} GB",
        f"expected cache hit rate: {hit_rate(host_memory_bytes(), expected_bytes):.1%} "
        f"in this host's {host_memory_bytes() / GB:.0f} GB of memory",
    ]
    if nas_cache_gb:
        rate = hit_rate(nas_cache_gb * GB, expected_bytes)
        lines.append(f"{rate:.1%} in {nas_cache_gb:g} GB of the NAS's cache")
    return "\n".join([*lines, PAPERS])


def run(
    plan: ShardPlan,
    strict: bool = False,
    overwrite: bool = False,
    workers: int = 0,
    nas_cache_gb: float = 0,
) -> None:
    """Say the plan, write it with a progress bar and say what was left out."""
    works = shards.divide(plan, strict)
    print(describe(plan, shards.expected_bytes(works), nas_cache_gb), flush=True)
    faults: dict[str, str] = {}
    written = images = 0
    with tqdm(total=len(works), unit="shard", desc="written") as bar:

        def told(shard: Shard) -> None:
            nonlocal written, images
            faults.update(shard.faults)
            written, images = written + shard.bytes, images + shard.images * plan.copies
            bar.update()

        shards.prepare(works, overwrite, workers, told)
    for path in sorted(faults):
        print(f"left out: {path} {faults[path]}")
    left_out = f"{len(faults)} file{'' if len(faults) == 1 else 's'} left out"
    print(f"{images} images, {written / GB:.3f} GB, {left_out}")


def read_back(folder: str) -> None:
    """Read all shards back with a progress bar and say how many images they have."""
    total = len(shards.manifest(Path(folder)))
    with tqdm(total=total, unit="shard", desc="read back") as bar:
        images = shards.verify(Path(folder), lambda shard: bar.update() and None)
    print(f"{images} images read back: all as they were written")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write shards, or continue where it was stopped")
    write.add_argument("source", help="folder with one folder of pictures for each class")
    write.add_argument("destination", help="folder for the shards")
    write.add_argument("--format", choices=sorted(shards.FORMATS), default=ShardPlan.format)
    write.add_argument("--shards", type=int, default=ShardPlan.shards)
    write.add_argument("--copies", type=int, default=ShardPlan.copies, help="of each shard")
    write.add_argument(
        "--enlarge", type=int, default=ShardPlan.enlarge, help="times in height and width"
    )
    write.add_argument("--name", default=ShardPlan.name, help="beginning of the shards' names")
    write.add_argument(
        "--first-label", type=int, default=ShardPlan.first_label, help="ImageNet's is 1"
    )
    write.add_argument("--seed", type=int, default=ShardPlan.seed, help="of the pictures' order")
    write.add_argument("--workers", type=int, default=0, help="0: as many as the job has cores")
    write.add_argument("--nas-cache-gb", type=float, default=0)
    write.add_argument("--strict", action="store_true", help="stop at the first bad file")
    write.add_argument("--overwrite", action="store_true", help="replace the shards that are there")
    verify = commands.add_parser("verify", help="read all shards back")
    verify.add_argument("destination")
    return parser.parse_args()


def main() -> None:
    """Do what the command line says; a failure is one line and exit status 1."""
    told = vars(arguments())
    command = told.pop("command")
    try:
        if command == "verify":
            read_back(told["destination"])
        else:
            how = {k: told.pop(k) for k in ("strict", "overwrite", "workers", "nas_cache_gb")}
            run(ShardPlan(**told), **how)
    except (PrepareError, OSError) as error:
        sys.exit(f"prepare: {error}")


if __name__ == "__main__":
    main()
