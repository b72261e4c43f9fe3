"""How long the login page and the options page take until they can be used, in a real Chromium.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.page_load [--rounds 30]

As root. On the portal of the tests, as ``deploy/up test`` brings it up (or the one that runs,
with ``PORTAL_TEST_KEEP=1``): browser, proxy, hub and Slurm share the machine's cores. Each round
is a new profile of the browser, so nothing is in its cache; for the options page it has the
login's cookies. From the start of the navigation to

- *painted*: the first text is on the screen;
- *interactive*: the page's elements are there (``domInteractive``);
- *ready*: its scripts have run, the form's own too (the end of ``DOMContentLoaded``);
- *loaded*: nothing is left to be loaded.

The last line is one JSON object; times are milliseconds.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness.answer_times import figures
from tests import instance
from tests.browser.chromium import launch
from tests.browser.lab import log_in
from tests.instance import USERS, Instance

_USED = {
    "login": ("/hub/login", "!document.getElementById('show-password').hidden"),
    "options": ("/hub/spawn", "!document.getElementById('gpu-form-forecast').hidden"),
}
"""The pages, and what is true once their own scripts have run."""
_READ = """
() => {
  const [page] = performance.getEntriesByType("navigation");
  const parts = [page, ...performance.getEntriesByType("resource")].filter(
    (part) => part.startTime < page.loadEventEnd && !part.name.includes("/api/"));
  return {
    painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    interactive: page.domInteractive,
    ready: page.domContentLoadedEventEnd,
    loaded: page.loadEventEnd,
    requests: parts.length,
    bytes: parts.reduce((sum, part) => sum + part.transferSize, 0),
  };
}
"""


def _logged_in(browser: Browser, portal: Instance) -> Any:
    """Return what a profile keeps of a login."""
    context = browser.new_context()
    page = context.new_page()
    log_in(page, portal, USERS[0], to="/hub/home")
    page.wait_for_url("**/hub/home")
    state = context.storage_state()
    context.close()
    return state


def _load(browser: Browser, portal: Instance, what: str, state: Any) -> dict[str, float]:
    """Load a page with an empty cache; return what the browser says of it."""
    path, is_used = _USED[what]
    context = browser.new_context(storage_state=state, viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.goto(f"{portal.url}{path}", wait_until="load")
    page.wait_for_function(is_used)
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    read: dict[str, float] = page.evaluate(_READ)
    context.close()
    return read


def _figures(rounds: list[dict[str, float]]) -> dict[str, Any]:
    times = ("painted", "interactive", "ready", "loaded")
    return {name: figures([each[name] for each in rounds]) for name in times} | {
        name: round(statistics.median(each[name] for each in rounds))
        for name in ("requests", "bytes")
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args(arguments)
    measured = commit()
    with instance.running() as portal, sync_playwright() as playwright:
        browser = launch(playwright)
        states = {"login": None, "options": _logged_in(browser, portal)}
        version = browser.version
        # Once each for the hub's own first time.
        for what, state in states.items():
            _load(browser, portal, what, state)
        rounds: dict[str, list[dict[str, float]]] = {what: [] for what in states}
        for _ in range(given.rounds):
            for what, state in states.items():
                rounds[what].append(_load(browser, portal, what, state))
        browser.close()
    print(
        json.dumps(
            {
                "benchmark": "page_load",
                "milliseconds": {what: _figures(each) for what, each in rounds.items()},
                "rounds": given.rounds,
                "goal": "p95 of ready under 1000 ms",
                "browser": f"Chromium {version}, headless, empty cache",
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
