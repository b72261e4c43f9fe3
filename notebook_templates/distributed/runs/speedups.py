"""Finished trainings side by side, and the papers' below them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transport

# papers.py is among the benchmarks.
sys.path += [str(Path(__file__).resolve().parents[2] / "benchmarks")]
from measurement import papers

# Settings that each training of images has.
_SAME = ("model", "batch", "precision", "data", "size")


def table(base: Path) -> list[dict[str, Any]]:
    """Compare all finished runs below ``base``.

    Speed-up is the throughput over that of one process with the same model, batch and precision on
    the same device, the fastest of several; efficiency is the speed-up over the number of
    processes. ``None`` where there is no such run, or one was too short for its speed to be known.
    Runs of programs that do not train on images are left out.
    """
    read = [
        (path.parent.name, json.loads(path.read_text()))
        for path in sorted(base.glob("*/summary.json"))
    ]
    found = [(name, one) for name, one in read if one.get("settings", {}).keys() >= {*_SAME}]
    alone: dict[tuple[str, ...], float] = {}
    for _, one in found:
        if one["processes"] == 1 and (speed := one["images_per_second"]):
            alone[_kind(one)] = max(speed, alone.get(_kind(one), 0.0))
    rows = []
    for name, one in sorted(found, key=lambda pair: (_kind(pair[1]), pair[1]["processes"])):
        single = alone.get(_kind(one))
        speed = one["images_per_second"]
        speed_up = speed / single if single and speed else None
        rows.append(
            {
                "run": name,
                "transport": transport.words(one.get("transport", {})),
                "processes": one["processes"],
                "device": one["device"],
                "images_per_second": speed,
                "speed_up": speed_up,
                "efficiency": speed_up / one["processes"] if speed_up else None,
            }
        )
    return rows


def _kind(summary: Mapping[str, Any]) -> tuple[str, ...]:
    settings = summary["settings"]
    return *(str(settings[name]) for name in _SAME), summary["device"]


def markdown(rows: list[dict[str, Any]]) -> str:
    """Show the runs as a table, and the papers' below it."""
    lines = [
        "| run | processes | on | images/s | speed-up | efficiency |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        speed_up = "" if row["speed_up"] is None else f"{row['speed_up']:.2f}"
        efficiency = "" if row["efficiency"] is None else f"{row['efficiency']:.0%}"
        speed = row["images_per_second"]
        said = "" if speed is None else f"{speed:,.0f}"
        name = ", ".join(part for part in (row["run"], row["transport"]) if part)
        lines.append(
            f"| {name} | {row['processes']} | {row['device']} | "
            f"{said} | {speed_up} | {efficiency} |"
        )
    for name, speeds in papers.trainings("resnet50").items():
        for gpus, speed in speeds.items():
            speed_up = f"{speed / speeds[1]:.2f}" if 1 in speeds else ""
            efficiency = f"{speed / speeds[1] / gpus:.0%}" if 1 in speeds else ""
            lines.append(
                f"| papers: {name} | {gpus} | ResNet-50, mixed precision | {speed:,} | "
                f"{speed_up} | {efficiency} |"
            )
    return "\n".join(lines)
