"""A benchmark of two checkouts in turn, to see what a change costs.

python -m benchmarks.portal.side_by_side BEFORE options_page [--rounds 3] [-- ARGUMENT...]

BEFORE is another checkout of this repository, such as a worktree of an older commit. Each round
runs the benchmark there and here, one after the other, each with its own environment; so what else
happens on the machine meets both. With ``--kept`` they measure test instances that run already,
number 1 there and number 2 here, in place of bringing one up each time. Of every figure of the last
line of JSON that both have, the medians and their ratio (here / there) are printed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.commit import circumstances, commit

HERE = Path(__file__).resolve().parents[2]
_HOURS = 2


def figures(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Give the numbers of a result, by the path of their keys; lists as their median."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from figures(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        numbers = [one for one in value if type(one) in (int, float)]
        if numbers and len(numbers) == len(value):
            yield name, float(median(numbers))
    elif type(value) in (int, float):
        yield name, float(value)


def result(
    checkout: Path, benchmark: str, arguments: Sequence[str], kept: str = ""
) -> dict[str, Any]:
    """Run it in a checkout, on the test instance of that number; return its last line.

    A benchmark that is interrupted, or takes too long, is told so and takes down what it has made.
    """
    instance = {"PORTAL_TEST_NUMBER": kept, "PORTAL_TEST_KEEP": "1"} if kept else {}
    dev = subprocess.run(
        [checkout / "deploy/venv", "dev"], check=True, capture_output=True, text=True
    ).stdout.strip()
    process = subprocess.Popen(
        [f"{dev}/bin/python", "-m", f"benchmarks.portal.{benchmark}", *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": "deploy", **instance},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        # Else a terminal's Ctrl-C reaches it, too, and ours would interrupt its clean-up.
        process_group=0,
    )
    try:
        printed, _ = process.communicate(timeout=_HOURS * 3600)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
        raise
    if process.returncode:
        raise SystemExit(f"{benchmark} in {checkout} ended with {process.returncode}:\n{printed}")
    return dict(json.loads(printed.rstrip().rpartition("\n")[2]))


def compared(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the medians of each figure that all have, the rounds' ratios, and their median."""
    there, here = ([dict(figures(one)) for one in results] for results in (before, after))
    names = [name for name in there[0] if all(name in one for one in (*there, *here))]
    found = {}
    for name in names:
        pairs = [(old[name], new[name]) for old, new in zip(there, here, strict=True)]
        row: dict[str, Any] = {
            "before": median(old for old, _ in pairs),
            "after": median(new for _, new in pairs),
        }
        if all(old > 0 for old, _ in pairs):
            ratios = [new / old for old, new in pairs]
            row |= {"ratio": round(median(ratios), 3), "ratios": [round(one, 3) for one in ratios]}
        found[name] = row
    return found


def main() -> None:
    """Print each round as it ends, and the comparison as the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("benchmark", help="a module of benchmarks.portal")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kept", action="store_true", help="measure instances 1 and 2, which run")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    asked, arguments = parser.parse_args(words[:split]), words[split + 1 :]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    measured = commit()
    before: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    for number in range(asked.rounds):
        # Who is first changes from round to round.
        order = [(asked.before.resolve(), before, "1"), (HERE, after, "2")]
        for checkout, results, instance in order[:: -1 if number % 2 else 1]:
            kept = instance if asked.kept else ""
            results.append(result(checkout, asked.benchmark, arguments, kept))
            print(f"round {number + 1}, {checkout}: {json.dumps(results[-1])}", file=sys.stderr)
    whole = {
        "benchmark": asked.benchmark,
        "rounds": asked.rounds,
        "before": commit(checkout=asked.before),
        "figures": compared(before, after),
        "load": round(os.getloadavg()[0], 1),
        **circumstances(measured),
    }
    print(json.dumps(whole))


if __name__ == "__main__":
    main()
