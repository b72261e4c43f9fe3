"""How long from the click on a framework's card to the output of the first cell.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.first_cell [--runs 5] [--kernels NAME ...]

As root, in one Chromium on the test instance. In turn, each kernel's card is clicked in the
launcher; a cell that imports the framework and adds up with it is typed at once, and run, before
the kernel is there. Where the time goes is told, too: until one can type, until the server says
that the kernel's process is started, what the import takes as the cell itself measures it, and the
rest, in which the kernel starts and the page shows what it says.

The last line is one JSON object: seconds (medians, minima, maxima) for each kernel and phase.
"""

import argparse
import json
import re
import time
from collections.abc import Sequence

from playwright.sync_api import Page, Response, expect, sync_playwright

from benchmarks.commit import circumstances, commit
from benchmarks.portal.session_start import summary
from tests import instance
from tests.browser.chromium import launch
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import session_of

USER = USERS[0]
PYTHON = "python3"
"""The kernel of a session's own environment."""
ADDS_UP = {
    PYTHON: "sum([40, 2])",
    "pytorch": "int(__import__('torch').ones(42).sum())",
    "tensorflow": "int((lambda tf: tf.reduce_sum(tf.ones(42)))(__import__('tensorflow')))",
    "keras": "int((lambda ops: ops.sum(ops.ones(42)))(__import__('keras').ops))",
    "jax": "int(__import__('jax').numpy.ones(42).sum())",
    "mxnet": "int(__import__('mxnet').nd.ones(42).sum().asscalar())",
}
CELL = "import time; began = time.perf_counter(); print({}, time.perf_counter() - began)"
OUTPUT = re.compile(r"^42 [\d.e-]+\s*$")
CLEAR_UP = "import glob, os; [os.remove(each) for each in glob.glob('Untitled*.ipynb')]"
PHASES = ("whole", "typing", "process", "import", "rest")


def time_one(page: Page, card: str, expression: str) -> dict[str, float]:
    """Click, type and run; return the seconds of each phase."""
    answered: list[float] = []

    def note(response: Response) -> None:
        if response.request.method == "POST" and "/api/sessions" in response.url:
            answered.append(time.perf_counter())

    page.on("response", note)
    button = page.locator(".jp-LauncherCard:visible", has_text=card).first
    button.wait_for()
    began = time.perf_counter()
    button.click()
    cell = page.locator(".jp-Notebook:visible .cm-content")
    cell.click()
    typing = time.perf_counter()
    page.keyboard.insert_text(CELL.format(expression))
    page.keyboard.press("Control+Enter")
    output = page.locator(".jp-Notebook:visible .jp-OutputArea-output").last
    expect(output).to_have_text(OUTPUT, timeout=120_000)
    done = time.perf_counter()
    page.remove_listener("response", note)
    imported = float(output.inner_text().split()[1])
    process = answered[0] - began
    return {
        "whole": done - began,
        "typing": typing - began,
        "process": process,
        "import": imported,
        "rest": done - began - process - imported,
    }


def measure(
    portal: Instance, page: Page, kernels: Sequence[str], runs: int
) -> dict[str, dict[str, list[float]]]:
    """Open each in turn; the first of each warms up."""
    cards = {PYTHON: "Python 3"} | {
        name: str(kernel["display_name"]) for name, kernel in portal.settings["kernels"].items()
    }
    series: dict[str, dict[str, list[float]]] = {
        name: {phase: [] for phase in PHASES} for name in kernels
    }
    with session_of(portal, USER) as visitor:
        for run in range(runs + 1):
            for name in kernels:
                open_lab(page, portal, USER)
                found = time_one(page, cards[name], ADDS_UP[name])
                words = "  ".join(f"{phase} {seconds:.2f}" for phase, seconds in found.items())
                print(f"{name:10} {'warm-up' if run == 0 else f'run {run:2}'}  {words}", flush=True)
                for phase, seconds in found.items() if run else ():
                    series[name][phase].append(seconds)
        visitor.run(CLEAR_UP)
    return series


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="notebooks of each kernel")
    parser.add_argument(
        "--kernels", nargs="+", choices=list(ADDS_UP), default=[PYTHON, "pytorch", "tensorflow"]
    )
    asked = parser.parse_args()
    with instance.running() as portal, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
        series = measure(portal, page, asked.kernels, asked.runs)
        browser.close()
    result = {
        "benchmark": "first_cell",
        "runs": asked.runs,
        "seconds": {
            name: {phase: summary(values) for phase, values in phases.items()}
            for name, phases in series.items()
        },
        **circumstances(commit()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
