"""Statistics of Slurm's scheduler, as ``sdiag`` prints them."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Scheduler:
    """Some of sdiag's figures (Slurm 22.05); ``None`` where it does not tell one."""

    server_threads: int | None
    agent_queue: int | None
    dbd_agent_queue: int | None
    last_cycle_seconds: float | None
    mean_cycle_seconds: float | None
    backfill_last_cycle_seconds: float | None
    backfill_queue: int | None


def read(text: str) -> Scheduler:
    """Read its answer; the words of a figure occur in several of its sections."""
    main, _, after = text.partition("Backfilling stats")
    backfill, _, _ = after.partition("Remote Procedure Call")
    return Scheduler(
        server_threads=_figure(main, "Server thread count"),
        agent_queue=_figure(main, "Agent queue size"),
        dbd_agent_queue=_figure(main, "DBD Agent queue size"),
        last_cycle_seconds=_seconds(main, "Last cycle"),
        mean_cycle_seconds=_seconds(main, "Mean cycle"),
        backfill_last_cycle_seconds=_seconds(backfill, "Last cycle"),
        backfill_queue=_figure(backfill, "Last queue length"),
    )


def _figure(section: str, words: str) -> int | None:
    found = re.search(rf"^\s*{re.escape(words)}:\s*(\d+)\s*$", section, re.MULTILINE)
    return int(found[1]) if found else None


def _seconds(section: str, words: str) -> float | None:
    figure = _figure(section, words)
    return None if figure is None else figure / 1e6
