"""One training among those that a measurement compares: its settings, and how it is started."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any
from zlib import crc32

from filesystem import caches, fs_cache, nas_sampler
from filesystem.onefs import OnefsError
from measurement import interruption, machine, tables
from measurement.result import Result, ResultError
from measurement.sampling import NodeSampler, Samples, within
from measurement.site_program import SiteProgramError
from measurement.steps import Nodes, StepError, answer, argv, run
from trials import bottleneck, frameworks, protocol
from trials.frameworks import PYTORCH, Framework

# plans.py and record.py are among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parents[2] / "distributed")]
import plans
import record
import transport

PACKAGES = ("torch", "numpy")
PARTS_OF_A_STEP = ("data", "forward_backward", "all_reduce", "optimiser")

NOT_FOR_IMAGES = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX",
)  # fmt: skip

# What is handed on as it is.
HANDED_ON = ("data", "mounts", "images", "size", "epochs", "steps", "warmup", "layout", "compile")


def parser(description: str) -> argparse.ArgumentParser:
    """Make the part of the command line that all measurements of trainings share."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = made.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--batch", type=int, default=64, help="images per process and step with fp32")
    add("--data", default="synthetic", help="'synthetic', or a folder: JPEG folders, shards")
    add("--mounts", default="", help="mount points, separated by commas: each rank reads from one")
    add("--images", type=int, default=12_800, help="synthetic images in an epoch")
    add("--size", type=int, default=0, help="pixels, height and width; 0: the network's own")
    add("--epochs", type=int, default=1, help="times that each image is seen")
    add("--steps", type=int, default=0, help="time at most this many; 0: all of the epochs")
    add("--warmup", type=int, default=10, help="untimed steps before them")
    add("--runs", type=int, default=5, help="times that each is measured; their mean counts")
    add("--layout", default="channels_last", choices=("channels_last", "contiguous_format"))
    add("--compile", default="no", choices=("yes", "no"), help="with torch.compile")
    add("--image", default="", help="a container image with PyTorch; needs apptainer")
    add(
        "--kernels",
        default="",
        help="other frameworks' modules or Pythons: NAME=MODULES or NAME=PYTHON, comma-separated; "
        "'': for each, the module of that name",
    )
    add("--flush-nas", default="", help=caches.FLUSH_HELP.format("run from files"))
    add("--caches-program", default=caches.DROP, help="what drops a node's caches, by sudo")
    add("--nas-api", default="", help=nas_sampler.HELP)
    add("--minutes", type=float, default=60.0, help="a training that takes longer has failed")
    return made


def chosen(names: str, known: tuple[str, ...], option: str) -> list[str]:
    """Read names between commas.

    Raises `ProtocolError` for one that is not known.
    """
    found = [name for name in names.split(",") if name]
    for name in found:
        if name not in known:
            raise protocol.ProtocolError(f"--{option} {name} is not one of {', '.join(known)}")
    return found


def measure(
    s: argparse.Namespace,
    there: Nodes,
    on: int,
    each: int,
    model: str,
    precision: str,
    framework: Framework = PYTORCH,
    kernels: Mapping[str, str] = MappingProxyType({}),
    seed: int = 1,
) -> dict[str, Any]:
    """Train on so many nodes with so many processes each; return the results.

    ``kernels``: where those of other frameworks are (`frameworks.parse_kernels`). ``seed``: of the
    order in which images are read.
    """
    batch = protocol.batch_for(precision, s.batch)
    threads = protocol.decode_threads(machine.own_cores(), each)
    options = {
        "results": s.results,
        "model": model,
        "precision": precision,
        "batch": batch,
        "workers": max(1, threads // each),
        "seed": seed,
        **{name: getattr(s, name) for name in HANDED_ON},
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    python = _in_image(s) if s.image else frameworks.python(framework, kernels)
    command = argv(there, [*python, str(framework.program), *words], on=on, each=each)
    emptied = without_caches(s, there, on)
    said = answer(command, s.minutes * 60)
    figures = {name: said.pop(name) for name in ("images_per_second", "step_variation")}
    kind = {
        "framework": framework.name,
        "model": model,
        "precision": precision,
        "batch": batch,
        "nodes": on,
    }
    return {**figures, **kind, **said, **emptied}


def without_caches(s: argparse.Namespace, there: Nodes, on: int) -> dict[str, Any]:
    """Let nodes and NAS forget what they read, before a run from files; return whether they did.

    And whether FS-Cache keeps it: that is on the nodes' disks, and is not dropped.
    Raises `SiteProgramError` where the site's program for the NAS fails.
    """
    if s.data == "synthetic":
        return {"caches_dropped": False, "fs_cache": None, "nas_flushed_by": None}
    folders = [str(Path(mount, s.data)) for mount in s.mounts.split(",")]
    emptied = _drop_caches(s.caches_program, there, on, folders)
    return {**emptied, "nas_flushed_by": caches.flush_nas(s.flush_nas)}


def _drop_caches(program: str, there: Nodes, on: int, folders: Sequence[str]) -> dict[str, Any]:
    """Let so many nodes forget what they read; returns whether all did.

    And whether FS-Cache keeps on all of them what is read from ``folders``, or on none.
    """
    command = [sys.executable, caches.__file__, program, *folders]
    printed = run(argv(there, command, on=on), 2 * caches.SECONDS).splitlines()
    answers = [json.loads(line) for line in printed]
    return {
        "caches_dropped": all(answer["caches_dropped"] for answer in answers),
        "fs_cache": fs_cache.agreed(answer["fs_cache"] for answer in answers),
    }


def _in_image(s: argparse.Namespace) -> list[str]:
    """Say how a process comes to the image's Python, with the GPUs where the node has them."""
    # What this program's own Python has loaded is not the image's, nor are packages in the home.
    bare = [word for name in NOT_FOR_IMAGES for word in ("-u", name)]
    gpus = ["--nv"] if Path("/dev/nvidiactl").exists() else []
    # All templates: the program is in a package of the folder that a program is in as a rule.
    places = plans.shown_to_image(PYTORCH.program.parent, Path(s.results), vars(s))
    binds = [word for place in places for word in ("--bind", place)]
    clean = ["/usr/bin/env", *bare, "PYTHONNOUSERSITE=1"]
    return [*clean, "apptainer", "exec", *gpus, *binds, plans.image_file(s.image), "python"]


def configuration(s: argparse.Namespace, there: Nodes) -> dict[str, Any]:
    """Return what a result says that it was measured with."""
    chosen = {name: value for name, value in vars(s).items() if name != "results"}
    sizes = {"nodes": there.count, "processes_per_node": there.tasks}
    return {**chosen, **sizes, **transport.recorded(os.environ)}


def repeated(
    result: Result,
    name: str,
    measure: Callable[..., dict[str, Any]],
    runs: int,
    sampler: NodeSampler,
    link: float | None,
) -> dict[str, Any]:
    """Measure a training several times; return what the runs came to, and what held them up.

    Each run has a seed of its own (of 31 bits, which every framework takes): one that read the
    images of the run before would measure caches.
    ``link``: what a node's network can carry, MB/s; ``None`` where that is not known.
    """
    parts = {one: crc32(one.encode()) >> 1 for one in (f"{name} run {n + 1}" for n in range(runs))}
    found = [result.part(one, partial(measure, seed=seed)) for one, seed in parts.items()]
    figures = mean(found)
    sampler.wait_for(found[-1]["throughput"][-1][0])
    figures |= judged(figures, found, sampler.samples(), link)
    print(words(figures), flush=True)
    return figures


def mean(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put several runs of the same training together."""
    first = runs[0]
    kept = (
        "framework", "version", "model", "precision", "batch", "processes", "nodes", "device",
        "size", "steps", "expected_hit_rate",
    )  # fmt: skip
    found = protocol.mean_of(
        [run["images_per_second"] for run in runs], [run["step_variation"] for run in runs]
    )
    # A framework that runs a step as a whole does not tell all of its parts.
    parts = {
        name: fmean(run["step_seconds"][name] for run in runs) for name in first["step_seconds"]
    }
    whole = sum(parts.values())
    # Parts of before an upgrade were measured without it.
    flushed = {run.get("nas_flushed_by") for run in runs}
    return {
        # Parts that were kept from before an upgrade lack what is new.
        **{name: first[name] for name in kept if name in first},
        "runs": len(runs),
        "caches_dropped": all(run["caches_dropped"] for run in runs),
        "fs_cache": fs_cache.agreed(run.get("fs_cache") for run in runs),
        "nas_flushed_by": flushed.pop() if len(flushed) == 1 else None,
        **found.values(),
        "step_seconds": parts,
        "shares": {name: seconds / whole for name, seconds in parts.items()},
    }


def judged(
    mean: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], samples: Samples, link: float | None
) -> dict[str, Any]:
    """Say how busy the nodes were during these runs, and what most likely held them up.

    ``link``: what a node's network can carry, MB/s; empty where no sample fell into the runs.
    """
    times = [(run["throughput"][0][0], run["throughput"][-1][0]) for run in runs]
    during = {node: within(lines, times) for node, lines in samples.items()}
    shares = mean["shares"]
    busy = bottleneck.busy(during, shares["data"], shares.get("all_reduce"), link)
    return {} if busy is None else {"use": vars(busy), "verdict": bottleneck.verdict(busy)}


def words(figures: Mapping[str, Any]) -> str:
    """Say what several runs came to in one line, and whether to believe it."""
    speed = tables.number(figures["images_per_second"])
    said = f"{speed} images/s, mean of {figures['runs']}"
    with_ = frameworks.with_other(figures.get("framework", PYTORCH.name))
    return (
        f"{figures['model']} {figures['precision']} on {figures['processes']}{with_}: {said}, "
        f"variation of runs {tables.variation(figures['run_variation'])}, "
        f"of steps {tables.variation(figures['step_variation'])}"
    )


def begin(
    main: Callable[[argparse.Namespace], None],
    settings: argparse.Namespace,
    *plain: type[Exception],
) -> None:
    """Run a measurement; what ends it is said in error.txt, too, of ``plain`` errors in words."""
    settings.results = str(Path(settings.results).expanduser().resolve())
    folder = Path(settings.results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "error.txt").unlink(missing_ok=True)
    interruption.stop_in_order()
    usual = (plans.PlanError, protocol.ProtocolError, ResultError, StepError)
    of_nas = (OnefsError, SiteProgramError)
    record.run(main, settings, interruption.Interrupted, *usual, *of_nas, *plain)
