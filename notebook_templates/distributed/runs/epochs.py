"""How long each epoch of a training took, and how long it was until an accuracy was reached.

This is how MLPerf looks at a training (https://mlcommons.org/benchmarks/training/): not at images a
second, but at the time until the network is good enough. Epoch 0, the first, is shown apart: in it
programs are compiled, and data comes from the storage that later epochs may find in a cache.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Epoch:
    """One pass over the images, with the test at its end."""

    number: int
    """From 0 on."""
    seconds: float
    elapsed_seconds: float
    """Since the training began, at its end; breaks between two jobs do not count."""
    test_accuracy: float | None
    """Of 1; ``None`` where there are no test images."""


def epochs(lines: Iterable[Mapping[str, Any]]) -> list[Epoch]:
    """Return the epochs of a training's lines of progress; one that is not at its end, too.

    Nothing where the lines are of an earlier version, which did not keep the time.
    """
    ends: dict[int, tuple[float, float | None]] = {}
    for line in lines:
        if "elapsed_seconds" in line and "epoch" in line:
            number = int(line["epoch"]) - 1
            ends[number] = (float(line["elapsed_seconds"]), line.get("test_accuracy"))
    found, before = [], 0.0
    for number, (elapsed, accuracy) in sorted(ends.items()):
        found.append(Epoch(number, elapsed - before, elapsed, accuracy))
        before = elapsed
    return found


def seconds_to(found: Iterable[Epoch], accuracy: float) -> float | None:
    """Return the time until the test accuracy was reached; ``None``: not yet."""
    reached = (one for one in found if (one.test_accuracy or 0.0) >= accuracy)
    first = next(reached, None)
    return first.elapsed_seconds if first else None


def markdown(lines: Iterable[Mapping[str, Any]], accuracy: float) -> str:
    """Write a table of epochs, and the time to an accuracy of ``accuracy`` (of 1) below it."""
    found = epochs(lines)
    if not found:
        return "No epoch is known yet."
    table = ["| epoch | seconds | since the start | test accuracy |", "| --- | --- | --- | --- |"]
    for one in found:
        tested = "" if one.test_accuracy is None else f"{one.test_accuracy:.2%}"
        cells = (str(one.number), f"{one.seconds:,.1f}", f"{one.elapsed_seconds:,.1f}", tested)
        table.append(f"| {' | '.join(cells)} |")
    return "\n".join([*table, "", *_words(found, accuracy)])


def _words(found: list[Epoch], accuracy: float) -> list[str]:
    words = [f"Epoch 0: {found[0].seconds:,.1f} s."]
    if later := found[1:]:
        mean = fmean(one.seconds for one in later)
        words[0] += f" Later epochs: {mean:,.1f} s on average."
    took = seconds_to(found, accuracy)
    best = max((one.test_accuracy for one in found if one.test_accuracy is not None), default=None)
    if took is not None:
        words.append(f"Test accuracy {accuracy:.2%} was reached after {took:,.1f} s.")
    elif best is not None:
        words.append(f"Test accuracy {accuracy:.2%} is not reached yet; the best is {best:.2%}.")
    else:
        words.append("Without test images there is no time to an accuracy.")
    return ["\n\n".join(words)]
