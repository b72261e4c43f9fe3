"""What it costs a session to sample its own use: processor time of one sample, and of an hour.

    sudo "$(deploy/venv dev)"/bin/python -m benchmarks.portal.use_sampling [--samples 360]

Processes that wait stand for a session's kernels, with ``PORTAL_JOB_ID`` in their environment; the
others are those of the machine. A look at each costs the most, so both numbers are given. As root,
to whom most of them belong, it costs more than for a user: those of others are passed by. GPUs are
not asked, unless the machine has NVIDIA's driver and ``CUDA_VISIBLE_DEVICES`` names some.

The last line is one JSON object: milliseconds of one sample, seconds of an hour.
"""

import argparse
import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.commit import circumstances, commit
from dsportal.session.usage.history import EVERY_SECONDS, History
from dsportal.session.usage.meter import Meter

JOB = "987654321"


@contextmanager
def processes(count: int) -> Iterator[None]:
    """Run some that wait."""
    argv = ["/bin/sleep", "600"]
    started = [subprocess.Popen(argv, env={"PORTAL_JOB_ID": JOB}) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


async def measure(samples: int) -> dict[str, float | int]:
    """Take samples without a pause; return what they cost."""
    meter = Meter({**os.environ, "PORTAL_JOB_ID": JOB})
    history = History(meter.held)
    history.add(await meter.read())
    processor, clock = time.process_time(), time.perf_counter()
    for _ in range(samples):
        history.add(await meter.read())
    sample_ms = 1000 * (time.process_time() - processor) / samples
    begun = time.process_time()
    answer = json.dumps(history.tell(), separators=(",", ":"))
    return {
        "sample_ms": round(sample_ms, 2),
        "sample_ms_of_the_clock": round(1000 * (time.perf_counter() - clock) / samples, 2),
        "hour_seconds": round(sample_ms * 3600 / EVERY_SECONDS / 1000, 2),
        "whole_answer_ms": round(1000 * (time.process_time() - begun), 2),
        "whole_answer_kb": len(answer) // 1024,
        "samples": samples,
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=360, help="360 are an hour's")
    parser.add_argument("--processes", type=int, default=12, help="of the session")
    given = parser.parse_args()
    with processes(given.processes):
        found = asyncio.run(measure(given.samples))
        of_machine = sum(path.name.isdigit() for path in Path("/proc").iterdir())
    result = {
        "benchmark": "use_sampling",
        "processes": given.processes,
        "processes_of_the_machine": of_machine,
        **found,
        **circumstances(commit()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
