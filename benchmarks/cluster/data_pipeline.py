"""Images per second that one core reads, decodes and cuts out: our readers beside others.

    export PYTHONPATH=deploy
    "$(deploy/venv dev)"/bin/python -m benchmarks.cluster.data_pipeline --folder /var/tmp/pipeline

As root, to drop the page cache. Compared are the readers of `benchmarks.cluster.data_readers` on
made-up pictures of 500x375 pixels and ImageNet's mean size in bytes, as JPEG files and as four
shards of each format. Each reader is a process of its own on one core; they take turns, cold (page
cache dropped) and warm. Where others use the core too, the warm images per second of CPU time say
more. Start-up is not measured. The environment of DALI is made on first use.
``PORTAL_PYTORCH_PYTHON`` and so on name an interpreter other than the deployment's newest.

The last line is one JSON object; ratios are medians of the rounds' ratios.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.cluster.data_readers import BASE, END, READERS, ImageReader
from benchmarks.commit import commit
from tests.instance import ROOT
from tests.notebooks.running import framework_python

DATA = ROOT / "notebook_templates" / "data"
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
FORMATS = ("tfrecord", "recordio", "webdataset")
STATES = ("cold", "warm", "warm, CPU time")
SHARDS = 4
LIMIT_SECONDS = 300
Rates = dict[str, dict[str, list[float]]]  # by state and reader, of each round

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
        image.save(folder / f"{number}.jpg", quality=87)
"""


def python_of(environment: str) -> str:
    """Return an environment's interpreter."""
    name = environment.removeprefix("kernel-")
    if name != environment:
        return str(framework_python(name))
    # None of the deployment's.
    if named := os.environ.get(f"PORTAL_{name.upper()}_PYTHON"):
        return named
    made = run([str(ROOT / "deploy/venv"), environment])
    return f"{made.splitlines()[-1]}/bin/python"


def run(argv: list[str]) -> str:
    """Run one program among our modules; return what it printed."""
    done = subprocess.run(
        argv,
        cwd=DATA,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def rates_of(
    python: str, reader: ImageReader, folder: Path, is_cold: bool, images: int
) -> tuple[float, float]:
    """Return images per second, and per second of CPU time, of one run on one core."""
    if is_cold:
        os.sync()
        DROP_CACHES.write_text("3")
    core = str(max(os.sched_getaffinity(0)))
    program = ["-c", reader.program + END, str(folder / reader.data)]
    said = run(["taskset", "--cpu-list", core, python, *program])
    count, per_second, per_cpu_second = said.splitlines()[-1].split()
    if int(count) < images * 0.9:
        raise RuntimeError(f"{reader.title} gave {count} of {images} images")
    return round(float(per_second), 1), round(float(per_cpu_second), 1)


def prepare(folder: Path, images: int) -> None:
    """Make the pictures and their shards, if they are not there."""
    python = python_of("kernel-pytorch")
    if not (folder / "jpeg").exists():
        run([python, "-c", MAKE, str(folder / "jpeg"), str(images)])
    for name in FORMATS:
        how = ["--format", name, "--shards", str(SHARDS)]
        run([python, "prepare.py", "write", str(folder / "jpeg"), str(folder / name), *how])


def measured(folder: Path, rounds: int, images: int) -> Rates:
    """Let all readers take turns."""
    pythons = {reader.environment: python_of(reader.environment) for reader in READERS}
    rates: Rates = {state: {reader.title: [] for reader in READERS} for state in STATES}
    for number in range(1, rounds + 1):
        for reader in READERS:
            python, of = pythons[reader.environment], reader.title
            cold, _ = rates_of(python, reader, folder, True, images)
            warm, worked = rates_of(python, reader, folder, False, images)
            for state, found in zip(STATES, (cold, warm, worked), strict=True):
                rates[state][of].append(found)
            print(f"round {number} {of}: {cold:.0f} {warm:.0f} {worked:.0f}", file=sys.stderr)
    return rates


def ratios(rates: dict[str, list[float]], base: str) -> dict[str, float]:
    """Return each reader's speed as a multiple of one reader's, in the same round."""
    return {
        title: round(
            statistics.median(one / other for one, other in zip(of, rates[base], strict=True)), 2
        )
        for title, of in rates.items()
    }


def best_of_others(rates: dict[str, list[float]], data: str) -> str:
    """Return the fastest reader of the same data that is not ours."""
    others = [one.title for one in READERS if one.data == data and one.name != "ours"]
    return max(others, key=lambda title: statistics.median(rates[title]))


def ours_to_best(rates: Rates) -> dict[str, dict[str, dict[str, float]]]:
    """Return our speed as a multiple of the fastest other's, of each kind of data."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for state, of_state in rates.items():
        found[state] = {}
        for reader in READERS:
            if reader.name == "ours":
                best = best_of_others(of_state, reader.data)
                found[state][reader.data] = {best: ratios(of_state, best)[reader.title]}
    return found


def result(rates: Rates, folder: Path) -> dict[str, object]:
    """Put what was measured together, with the machine."""
    sizes = [path.stat().st_size for path in (folder / "jpeg").glob("*/*.jpg")]
    return {
        "benchmark": "data_pipeline",
        "images": len(sizes),
        "mean_image_bytes": round(statistics.mean(sizes)),
        "images_per_second_and_core": {
            state: {title: round(statistics.median(of), 1) for title, of in of_state.items()}
            for state, of_state in rates.items()
        },
        "ratio_to_plain": {state: ratios(of, BASE.title) for state, of in rates.items()},
        "ours_to_fastest_other": ours_to_best(rates),
        "runs": rates,
        "load_average_1_minute": round(os.getloadavg()[0], 2),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, 1 used",
        "python": platform.python_version(),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def main() -> None:
    """Measure all readers in turns and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="for pictures and shards")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    told = parser.parse_args()
    folder = told.folder.resolve()
    prepare(folder, told.images)
    print(json.dumps(result(measured(folder, told.rounds, told.images), folder)))


if __name__ == "__main__":
    main()
