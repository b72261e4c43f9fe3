#!/usr/bin/env python
"""Measure how fast networks are trained, by the papers' protocol.

    python training.py --results FOLDER --models resnet50 --precisions fp32,bf16

In the batch script of a Slurm job it measures on all nodes of the job, with as many processes on
each as the job has tasks there; elsewhere with one process on this machine. Run it again with the
same settings to go on where it was interrupted.
"""

import argparse
from functools import partial
from pathlib import Path

from architectures import models
from filesystem import nas_sampler
from filesystem.nas_sampler import NasSampler
from measurement import machine, steps
from measurement.result import Result
from measurement.sampling import NodeSampler, thinned
from trials import trial


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = trial.parser("How fast are networks trained?")
    add = parser.add_argument
    add("--models", default="resnet50", help=f"comma-separated, of {', '.join(models.SIZES)}")
    add(
        "--precisions",
        default="fp32,bf16",
        help=f"comma-separated, of {', '.join(models.PRECISIONS)}",
    )
    return parser.parse_args()


def main(s: argparse.Namespace) -> None:
    """Measure each network at each precision, several times."""
    names = trial.chosen(s.models, tuple(models.SIZES), "models")
    precisions = trial.chosen(s.precisions, tuple(models.PRECISIONS), "precisions")
    kinds = [(model, precision) for model in names for precision in precisions]
    there = steps.nodes()
    kept = trial.configuration(s, there)
    result = Result(Path(s.results), "training", kept, len(kinds) * s.runs)
    hosts, figures = steps.hosts(there), []
    nas = NasSampler(nas_sampler.asked(s.nas_api), Path(s.results))
    with nas, NodeSampler(there, Path(s.results)) as sampler:
        for model, precision in kinds:
            measure = partial(trial.measure, s, there, there.count, there.tasks, model, precision)
            name, link = f"{model} {precision}", hosts[0]["link_mb_per_second"]
            figures.append(trial.repeated(result, name, measure, s.runs, sampler, link))
    versions = machine.versions(*trial.PACKAGES)
    samples = thinned(sampler.samples())
    result.finish(hosts, versions, {"trainings": figures}, samples, nas.samples())


if __name__ == "__main__":
    trial.begin(main, settings())
