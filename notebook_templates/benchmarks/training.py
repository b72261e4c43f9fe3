#!/usr/bin/env python
"""Measure how fast networks are trained, by the papers' protocol.

    python training.py --results FOLDER --models resnet50 --precisions fp32,bf16
    python training.py --results FOLDER --models resnet50 --frameworks pytorch,tensorflow,mxnet

In the batch script of a Slurm job it measures on all nodes of the job, with as many processes on
each as the job has tasks there; elsewhere with one process on this machine. Run it again with the
same settings to go on where it was interrupted.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

from architectures import models
from filesystem import nas_sampler
from filesystem.nas_sampler import NasSampler
from measurement import machine, steps
from measurement.result import Result
from measurement.sampling import NodeSampler, thinned
from trials import frameworks, protocol, trial
from trials.frameworks import FRAMEWORKS, PYTORCH, Framework


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
    add(
        "--frameworks",
        default="",
        help=f"comma-separated, of {', '.join(FRAMEWORKS)}; '': {PYTORCH.name}",
    )
    return parser.parse_args()


class Training(NamedTuple):
    """One of those that are compared."""

    framework: Framework
    model: str
    precision: str

    @property
    def name(self) -> str:
        """What its parts are called."""
        said = "" if self.framework is PYTORCH else f" {self.framework.name}"
        return f"{self.model} {self.precision}{said}"

    def not_measured(self, reason: str) -> dict[str, str]:
        """Return what a summary says of one that was not."""
        print(f"{self.name} is not measured: {reason}", flush=True)
        kind = {"model": self.model, "precision": self.precision}
        return {"framework": self.framework.name, **kind, "reason": reason}


def main(s: argparse.Namespace) -> None:
    """Measure each network at each precision with each framework, several times."""
    names = trial.chosen(s.models, tuple(models.SIZES), "models")
    precisions = trial.chosen(s.precisions, tuple(models.PRECISIONS), "precisions")
    with_ = trial.chosen(s.frameworks or PYTORCH.name, tuple(FRAMEWORKS), "frameworks")
    kernels = frameworks.parse_kernels(s.kernels)
    there = steps.nodes()
    wanted, not_measured = [], []
    for framework in map(FRAMEWORKS.__getitem__, with_):
        lacking = frameworks.missing(framework, kernels)
        for one in (Training(framework, m, p) for m in names for p in precisions):
            reason = lacking or frameworks.obstacle(framework, s, one.model, one.precision)
            if reason:
                not_measured.append(one.not_measured(reason))
            else:
                wanted.append(one)
    kept = trial.configuration(s, there)
    many = len(wanted) * s.runs
    result = Result(Path(s.results), "training", kept, many, machine.device())
    hosts, figures = steps.hosts(there), []
    nas = NasSampler(nas_sampler.asked(s.nas_api), Path(s.results))
    with nas, NodeSampler(there, Path(s.results)) as sampler:
        for one in wanted:
            kind = (one.model, one.precision, one.framework, kernels)
            measure = partial(trial.measure, s, there, there.count, there.tasks, *kind)
            link = hosts[0]["link_mb_per_second"]
            try:
                figures.append(trial.repeated(result, one.name, measure, s.runs, sampler, link))
            except steps.StepError as error:
                if one.framework is PYTORCH:
                    raise
                # What the others reach is worth knowing all the same: the run has not failed.
                (Path(s.results) / "error.txt").unlink(missing_ok=True)
                not_measured.append(one.not_measured(frameworks.last_words(error)))
    if not figures:
        raise protocol.ProtocolError(f"nothing could be measured: {not_measured[0]['reason']}")
    versions = machine.versions(*trial.PACKAGES)
    found = {"trainings": figures, "not_measured": not_measured}
    result.finish(hosts, versions, found, thinned(sampler.samples()), nas.samples())


if __name__ == "__main__":
    trial.begin(main, settings())
