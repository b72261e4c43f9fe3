#!/usr/bin/env python
"""Measure what more GPUs, or processes on CPUs, give a training: on a node, and over nodes.

    python scaling.py --results FOLDER --model resnet50 --precision bf16

Each process has the same batch, whatever their number. Run it as the batch script of a Slurm job;
run it again with the same settings to go on where it was interrupted.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from architectures import models
from filesystem import nas_sampler
from filesystem.nas_sampler import NasSampler
from measurement import machine, steps
from measurement.choices import doubled
from measurement.result import Result
from measurement.sampling import NodeSampler, thinned
from trials import frameworks, protocol, trial
from trials.frameworks import FRAMEWORKS, PYTORCH


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = trial.parser("How much faster is training on more GPUs?")
    add = parser.add_argument
    add("--model", default="resnet50", choices=models.SIZES, help="what is trained")
    add("--precision", default="bf16", choices=models.PRECISIONS, help="of the products")
    add(
        "--framework",
        default="",
        choices=("", *FRAMEWORKS),
        help=f"what trains it; '': {PYTORCH.name}",
    )
    return parser.parse_args()


def placements(nodes: int, each: int) -> list[tuple[int, int]]:
    """Return the numbers of nodes, and of processes on each: first one node is filled.

    >>> placements(nodes=3, each=4)
    [(1, 1), (1, 2), (1, 4), (2, 4), (3, 4)]
    """
    return [(1, n) for n in doubled(each)] + [(n, each) for n in doubled(nodes) if n > 1]


def speed_ups(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to each point its speed-up over the first, of one process, and what that is of ideal."""
    alone = points[0]["images_per_second"]
    times = [point["images_per_second"] / alone for point in points]
    return [
        {**point, "speed_up": up, "efficiency": up / point["processes"]}
        for point, up in zip(points, times, strict=True)
    ]


def main(s: argparse.Namespace) -> None:
    """Measure the same training on ever more processes."""
    there = steps.nodes()
    framework = FRAMEWORKS[s.framework or PYTORCH.name]
    kernels = frameworks.parse_kernels(s.kernels)
    reason = frameworks.obstacle(framework, s, s.model, s.precision) or frameworks.missing(
        framework, kernels
    )
    if reason:
        raise protocol.ProtocolError(reason)
    where = placements(there.count, there.tasks)
    kept = trial.configuration(s, there)
    many = len(where) * s.runs
    result = Result(Path(s.results), "scaling", kept, many, machine.device())
    hosts, points = steps.hosts(there), []
    nas = NasSampler(nas_sampler.asked(s.nas_api), Path(s.results))
    with nas, NodeSampler(there, Path(s.results)) as sampler:
        for on, each in where:
            kind = (s.model, s.precision, framework, kernels)
            measure = partial(trial.measure, s, there, on, each, *kind)
            name, link = f"{on} x {each}", hosts[0]["link_mb_per_second"]
            points.append(trial.repeated(result, name, measure, s.runs, sampler, link))
    figures = {"points": speed_ups(points)}
    versions = machine.versions(*trial.PACKAGES)
    result.finish(hosts, versions, figures, thinned(sampler.samples()), nas.samples())


if __name__ == "__main__":
    trial.begin(main, settings())
