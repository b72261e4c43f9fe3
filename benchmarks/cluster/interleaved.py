"""Several ways to do the same, measured interleaved: a busy moment slows all of them."""

import os
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence

_SECONDS = 1800


def interleaved(
    kinds: Sequence[str], rounds: int, measure: Callable[[str, int], float], unit: str
) -> dict[str, list[float]]:
    """Call ``measure(kind, round)`` for each kind in each round; return the figures of each.

    Who is first changes from round to round.
    """
    speeds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        first = number % len(kinds)
        for kind in (*kinds[first:], *kinds[:first]):
            speeds[kind].append(measure(kind, number))
            print(f"round {number + 1} {kind}: {speeds[kind][-1]:,.1f} {unit}", flush=True)
    return speeds


def compared(speeds: Mapping[str, Sequence[float]], unit: str) -> dict[str, object]:
    """Return the median of each kind, and ours over each of the others, round by round."""
    ours = speeds["ours"]
    return {
        unit: {kind: round(statistics.median(of), 1) for kind, of in speeds.items()},
        "ours_over": {
            kind: [round(mine / other, 4) for mine, other in zip(ours, of, strict=True)]
            for kind, of in speeds.items()
            if kind != "ours"
        },
    }


def said_by(argv: Sequence[str]) -> str:
    """Run a program that asks nothing of the internet; return what it printed.

    Where it fails, its last words end this process.
    """
    done = subprocess.run(
        argv,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)[:200]} failed:\n{done.stderr[-2000:]}")
    return done.stdout
