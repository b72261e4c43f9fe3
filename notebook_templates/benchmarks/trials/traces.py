"""What a training's steps took, and what follows: throughput, variation, where the time goes.

Nothing but arithmetic: traces made by hand give what one works out on paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev


@dataclass(frozen=True)
class StepTime:
    """One step of one process, in seconds."""

    data: float
    """Until the step's images were on the device."""
    network: float
    """Forward and backward, and what of the exchange of gradients did not hide behind them."""
    optimiser: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return self.data + self.network + self.optimiser


@dataclass(frozen=True)
class Trace:
    """What one process measured."""

    images: int
    """Of this process, in a step."""
    step_times: Sequence[StepTime]
    alone: Sequence[StepTime] = ()
    """Further steps, in which gradients stayed with the process that computed them."""

    @property
    def seconds(self) -> float:
        """From the first step's begin to the last one's end."""
        return sum(step.seconds for step in self.step_times)


@dataclass(frozen=True)
class Split:
    """Where a step's time goes, in seconds."""

    data: float
    forward_backward: float
    all_reduce: float
    optimiser: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return self.data + self.forward_backward + self.all_reduce + self.optimiser

    def shares(self) -> dict[str, float]:
        """Return each part's share of the step."""
        return {name: seconds / self.seconds for name, seconds in vars(self).items()}


def images_per_second(traces: Sequence[Trace]) -> float:
    """Return the throughput of all processes: all images over the slowest one's time."""
    images = sum(trace.images * len(trace.step_times) for trace in traces)
    return images / max(trace.seconds for trace in traces)


def throughput(
    traces: Sequence[Trace], began: float, points: int = 50
) -> list[tuple[float, float]]:
    """Return moments, seconds since 1970, and the images/s of all since the moment before.

    The first is the begin, with no images/s. The steps of the first process stand for those of all,
    which wait for each other. ``points``: there are no more, besides.
    """
    step_times, images = traces[0].step_times, sum(trace.images for trace in traces)
    many, at, found = -(-len(step_times) // points), began, [(round(began, 3), 0.0)]
    for first in range(0, len(step_times), many):
        some = step_times[first : first + many]
        seconds = sum(step.seconds for step in some)
        at += seconds
        found.append((round(at, 3), round(images * len(some) / seconds, 2)))
    return found


def split(traces: Sequence[Trace]) -> Split:
    """Say where a step's time goes, as the mean over steps and processes.

    The all-reduce is what the network took longer than without the exchange of gradients: the part
    that does not hide behind the backward pass, and the waiting for slower processes. A single
    process has none.
    """
    every = [_split(trace) for trace in traces]
    names = Split.__dataclass_fields__
    return Split(**{name: fmean(getattr(one, name) for one in every) for name in names})


def of_whole_steps(traces: Sequence[Trace]) -> dict[str, float]:
    """Say where the time of steps goes that were timed as a whole, as the mean over all."""
    every = [step for trace in traces for step in trace.step_times]
    data = fmean(step.data for step in every)
    return {"data": data, "training": fmean(step.seconds for step in every) - data}


def _split(trace: Trace) -> Split:
    network = fmean(step.network for step in trace.step_times)
    exchange = min(network, _exchange(trace)) if trace.alone else 0.0
    return Split(
        data=fmean(step.data for step in trace.step_times),
        forward_backward=network - exchange,
        all_reduce=exchange,
        optimiser=fmean(step.optimiser for step in trace.step_times),
    )


def _exchange(trace: Trace) -> float:
    # Medians: a step that something else held up is in one of both.
    together, alone = (
        median(step.network for step in step_times)
        for step_times in (trace.step_times, trace.alone)
    )
    return max(0.0, together - alone)


def step_variation(traces: Sequence[Trace]) -> float:
    """Return the steps' standard deviation over their mean, of the process that varies most."""
    seconds = [[step.seconds for step in trace.step_times] for trace in traces]
    return max(pstdev(each) / fmean(each) for each in seconds)
