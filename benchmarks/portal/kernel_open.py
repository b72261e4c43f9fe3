"""From the click on a framework's card to the first cell's answer, which imports the framework.

    PYTHONPATH=deploy "$(deploy/venv dev)"/bin/python -m benchmarks.portal.kernel_open [--runs 8]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. In JupyterLab, in one
session, the cards of the launcher are clicked in turn, and a cell is typed and run at once.
*answered* is when it has printed the framework's version; *bare* is how long the kernel's
interpreter alone needs for that. The first of each warms up: what it reads comes from the disk.

The last line is one JSON object: seconds by framework (medians, minima, maxima).
"""

import argparse
import json
import os
import pwd
import subprocess
import time

from playwright.sync_api import Page, sync_playwright

from benchmarks.commit import circumstances, commit
from benchmarks.portal.session_start import USER, summary
from tests import instance
from tests.browser.chromium import launch
from tests.browser.lab import open_lab, wait_for_notebook
from tests.notebooks.running import framework_python
from tests.visitor import Visitor

FRAMEWORKS = {"PyTorch": ("pytorch", "torch"), "TensorFlow": ("tensorflow", "tensorflow")}
_PRINTED = """
version => [...document.querySelectorAll('.jp-Notebook .jp-OutputArea-output')].some(
  output => output.textContent.trim() === version)
"""


def opened(page: Page, title: str, module: str, version: str) -> float:
    """Click a framework's card and run a cell; return the seconds until it has answered."""
    begun = time.perf_counter()
    page.locator(".jp-LauncherCard:visible", has_text=title).first.click()
    wait_for_notebook(page)
    page.keyboard.type(f"import {module}; print({module}.__version__)")
    page.keyboard.press("Control+Enter")
    page.wait_for_function(_PRINTED, arg=version, polling=20, timeout=120_000)
    return time.perf_counter() - begun


def bare(python: str, module: str) -> tuple[float, str]:
    """Have the interpreter alone print the version; return the seconds, and the version."""
    begun = time.perf_counter()
    argv = [python, "-c", f"import {module}; print({module}.__version__)"]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - begun, printed.strip()


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=8, help="of each framework")
    runs = parser.parse_args().runs
    measured = commit()
    seconds: dict[str, dict[str, list[float]]] = {name: {} for name in FRAMEWORKS}
    with instance.running() as portal, sync_playwright() as playwright:
        visitor = Visitor(portal, USER)
        visitor.log_in().raise_for_status()
        visitor.start_and_wait(gpus=0)
        browser = launch(playwright)
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        for run in range(runs + 1):
            for title, (framework, module) in FRAMEWORKS.items():
                alone, version = bare(str(framework_python(framework)), module)
                open_lab(page, portal, USER)
                found = {"bare": alone, "answered": opened(page, title, module, version)}
                print(
                    title, *(f"{what} {value:.2f} s" for what, value in found.items()), flush=True
                )
                for what, value in found.items() if run else ():
                    seconds[title].setdefault(what, []).append(value)
        browser.close()
        visitor.leave()
        home = pwd.getpwnam(USER).pw_dir
        portal.slurm("/bin/sh", "-c", 'rm -f "$1"/Untitled*.ipynb', "sh", home, user=USER)
        visitor.close()
    result = {
        "benchmark": "kernel_open",
        "runs": runs,
        "seconds": {
            title: {what: summary(values) for what, values in of.items()}
            for title, of in seconds.items()
        },
        "goal": "answered within 1.0 s with PyTorch, 1.5 s with TensorFlow",
        "load": round(os.getloadavg()[0], 1),
        **circumstances(measured),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
