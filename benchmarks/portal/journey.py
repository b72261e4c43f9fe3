"""From the login to a training's first line and chart: seconds and clicks, beside upstream's hub.

    export PYTHONPATH=deploy
    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.journey [--runs 5] [--profiles kept]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. In turn, each time in
a fresh profile of one Chromium, two people do the same on the same cluster, with one GPU each:

*ours* logs in, presses Start, opens the PyTorch template with **New from Template**, runs all its
cells, and opens TensorBoard with the button in the notebook's toolbar.

*upstream* logs in at a plain JupyterHub with ``batchspawner.SlurmSpawner`` (`session_start` says
how it is set up), which starts JupyterLab at once; opens the same notebook through the folder
``templates``, which its administrator has linked into the home, and runs all its cells. There is no
TensorBoard behind that hub.

Seconds are counted from the click on "Log in": *form* is when ours can be sent; *started* when the
session answers and the page of JupyterLab begins to load; *usable* when JupyterLab's launcher has
the focus, which it takes last of all; *training* when the notebook shows the line of the first 100
steps; *chart* when TensorBoard has drawn the first point. Nobody hesitates, so it is the time that
a person waits. A click is a click, a double-click, or a key in place of one; the name and the
password that are typed are none.

With ``--profiles kept`` each keeps the profile of the journey before, without its cookies: the
browser has JupyterLab's files and what it compiled of them, as on anybody's second day.

Of JupyterLab's page, from its begin until it is usable, the browser also tells what it fetches (the
files, what of them came over HTTP/2, the megabytes on the wire) and how long the page's main thread
computes, scripts and all.

The last line is one JSON object: seconds (medians, minima, maxima), clicks, ratios and the page's
medians.
"""

import argparse
import json
import os
import pwd
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness.page_account import PageAccount, medians
from benchmarks.portal.session_start import UPSTREAM_USER, USER, HubApi, ratio, summary
from benchmarks.portal.session_start import upstream_hub as plain_hub
from benchmarks.portal.tensorboard_open import Eye
from tests import instance
from tests.browser.chromium import launch
from tests.browser.lab import forget_screen, item
from tests.instance import PASSWORD, Instance
from tests.notebooks.running import framework_python
from tests.visitor import Visitor

MOMENTS = ("usable", "training", "chart")
_TITLE = "Handwritten digits with PyTorch"
_KERNEL = "PyTorch 2.13"
_HAS_LAUNCHER = "() => Boolean(document.activeElement?.closest('.jp-Launcher'))"
_HAS_LINE = """
() => document.querySelector('.jp-Notebook')?.textContent.includes('epoch 1  step   100')
"""
_POINT_PIXELS = 5
_MOST_MILLISECONDS = 300_000

_UPSTREAM = """
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "{password}"
c.SlurmSpawner.environment = {{**c.SlurmSpawner.environment, "JUPYTER_PATH": "{kernels}"}}
"""


@dataclass(frozen=True)
class Milestone:
    """When something is reached."""

    seconds: float
    """Since the click on "Log in"."""
    clicks: int
    """Until then."""


@dataclass
class Person:
    """Somebody in front of a fresh browser."""

    page: Page
    clicks: int = 0
    begun: float = 0.0
    moments: dict[str, Milestone] = field(default_factory=dict)
    jupyterlab: dict[str, float] = field(default_factory=dict)
    """What its page took until it could be used."""

    def sign_in(self, address: str, name: str) -> None:
        """Open the address and log in; the time counts from here."""
        self.page.goto(address)
        self.page.locator("#username_input").fill(name)
        self.page.locator("#password_input").fill(PASSWORD)
        self.begun = time.perf_counter()
        self.click(self.page.locator("#login_submit"))

    def click(self, what: Locator) -> None:
        """Click."""
        self.clicks += 1
        what.click()

    def double_click(self, what: Locator) -> None:
        """Click twice, which is one thing to do."""
        self.clicks += 1
        what.dblclick()

    def sees(self, moment: str, holds: str) -> None:
        """Wait for it, and note when it is."""
        self.page.wait_for_function(holds, polling=20, timeout=_MOST_MILLISECONDS)
        self.note(moment)

    def note(self, moment: str) -> None:
        """Note that this is reached."""
        self.moments[moment] = Milestone(time.perf_counter() - self.begun, self.clicks)

    def comes_to_jupyterlab(self) -> None:
        """Wait until its page begins to load, and then until it can be used."""
        load = PageAccount(self.page)
        self.page.wait_for_url("**/user/*/lab*", wait_until="commit", timeout=_MOST_MILLISECONDS)
        self.note("started")
        load.begins()
        self.sees("usable", _HAS_LAUNCHER)
        self.jupyterlab = load.figures()

    def run_all(self, *buttons: Locator) -> None:
        """Run the open notebook's cells by these buttons, once it has its kernel."""
        self.page.get_by_text(f"{_KERNEL} | Idle").wait_for()
        for button in buttons:
            self.click(button)
        self.sees("training", _HAS_LINE)


def at_ours(portal: Instance, person: Person, eye: Eye, last: str) -> None:
    """Go the way at our portal, as far as the ``last`` moment."""
    page = person.page
    person.sign_in(portal.url, USER)
    start = page.get_by_role("button", name="Start", exact=True)
    start.wait_for()
    person.note("form")
    person.click(start)
    person.comes_to_jupyterlab()
    if last == "usable":
        return
    person.click(page.locator(".jp-LauncherCard", has_text="New from Template").last)
    row = page.get_by_role("dialog").locator("label").filter(has_text=_TITLE)
    person.double_click(row)
    toolbar = page.locator(".jp-NotebookPanel-toolbar")
    person.run_all(toolbar.get_by_role("button", name="Run All", exact=True))
    if last == "training":
        return
    with page.expect_popup() as popup:
        person.click(toolbar.get_by_role("button", name="TensorBoard"))
    eye.wait_for_chart(popup.value, _POINT_PIXELS)
    person.note("chart")


def at_upstream(url: str, person: Person, last: str) -> None:
    """Go as far as one comes at a plain hub, or to the ``last`` moment."""
    person.sign_in(url, UPSTREAM_USER)
    person.comes_to_jupyterlab()
    if last == "usable":
        return
    for name in ("templates", "pytorch", "mnist.ipynb"):
        person.double_click(item(person.page, name))
    menu = ("Run", "Run All Cells")
    person.run_all(*(person.page.get_by_role("menuitem", name=name, exact=True) for name in menu))


def _home(name: str) -> Path:
    return Path(pwd.getpwnam(name).pw_dir)


def _forget(portal: Instance, name: str) -> None:
    """Remove what an earlier journey left in a home."""
    forget_screen(portal, name)
    left = ("pytorch-mnist.ipynb", "logs")
    portal.slurm("/bin/rm", "-rf", *(str(_home(name) / path) for path in left), user=name)


@contextmanager
def _upstream(portal: Instance, folder: Path) -> Iterator[HubApi]:
    """Run upstream's hub, as an administrator would set it up for this cluster."""
    kernel = folder / "kernels" / "pytorch"
    kernel.mkdir(parents=True)
    argv = [str(framework_python("pytorch")), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": _KERNEL, "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    for place in (folder, kernel.parent, kernel):
        place.chmod(0o755)
    for name, target in portal.settings["session"]["folders"].items():
        link = ["/bin/ln", "-sfn", target, str(_home(UPSTREAM_USER) / name)]
        portal.slurm(*link, user=UPSTREAM_USER)
    with plain_hub(portal, folder, _UPSTREAM.format(password=PASSWORD, kernels=folder)) as hub:
        yield hub


@dataclass
class Profiles:
    """The browser's profiles: a fresh one for each journey, or each person's own."""

    browser: Browser
    are_kept: bool
    _kept: dict[str, BrowserContext] = field(default_factory=dict)

    @contextmanager
    def lent(self, name: str) -> Iterator[BrowserContext]:
        """Lend the person of this name one in which nobody is logged in."""
        context = self._kept.pop(name, None) or self.browser.new_context(
            viewport={"width": 1440, "height": 900}, ignore_https_errors=True
        )
        context.set_default_timeout(_MOST_MILLISECONDS)
        yield context
        if not self.are_kept:
            context.close()
            return
        for page in context.pages:
            page.close()
        context.clear_cookies()
        self._kept[name] = context


def measure(
    portal: Instance, profiles: Profiles, upstream: HubApi, runs: int, last: str
) -> dict[str, list[Person]]:
    """Let both go in turn, each in its profile; the first of each warms up."""
    visitor = Visitor(portal, USER)
    visitor.log_in().raise_for_status()
    visitor.leave()
    ways: dict[str, tuple[str, Callable[[Person, Eye], None], Callable[[], None]]] = {
        "ours": (USER, lambda person, eye: at_ours(portal, person, eye, last), visitor.leave),
        "upstream": (
            UPSTREAM_USER,
            lambda person, _: at_upstream(upstream.url.removesuffix("/hub/api"), person, last),
            lambda: upstream.stop(UPSTREAM_USER),
        ),
    }
    series: dict[str, list[Person]] = {kind: [] for kind in ways}
    for run in range(runs + 1):
        for kind, (name, go, leave) in ways.items():
            _forget(portal, name)
            with profiles.lent(kind) as context:
                eye = Eye.of(context)
                person = Person(context.new_page())
                go(person, eye)
            leave()
            words = "  ".join(
                f"{what} {one.seconds:.1f} s, {one.clicks} clicks"
                for what, one in person.moments.items()
            )
            print(f"{'warm-up' if run == 0 else f'run {run:2}'}  {kind:8}  {words}", flush=True)
            if run:
                series[kind].append(person)
    visitor.close()
    return series


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="journeys of each kind")
    parser.add_argument("--profiles", choices=("fresh", "kept"), default="fresh")
    parser.add_argument("--to", choices=MOMENTS, default=MOMENTS[-1], help="the last moment")
    given = parser.parse_args(arguments)
    runs = given.runs
    measured = commit()
    with (
        instance.running() as portal,
        tempfile.TemporaryDirectory() as name,
        sync_playwright() as playwright,
        _upstream(portal, Path(name)) as upstream,
    ):
        browser = launch(playwright)
        profiles = Profiles(browser, given.profiles == "kept")
        series = measure(portal, profiles, upstream, runs, given.to)
        browser.close()
    seconds = {
        kind: {what: [one.moments[what].seconds for one in people] for what in people[0].moments}
        for kind, people in series.items()
    }
    clicks = {
        kind: {what: one.clicks for what, one in people[-1].moments.items()}
        for kind, people in series.items()
    }
    pages = {kind: medians([one.jupyterlab for one in people]) for kind, people in series.items()}
    ratios = {
        what: ratio(seconds["ours"][what], theirs) for what, theirs in seconds["upstream"].items()
    }
    print(
        json.dumps(
            {
                "benchmark": "journey",
                "runs": runs,
                "profiles": given.profiles,
                "seconds": {
                    kind: {what: summary(values) for what, values in reached.items()}
                    for kind, reached in seconds.items()
                },
                "clicks": clicks,
                "jupyterlab_page": pages,
                "ours_over_upstream": ratios,
                "goal": "6 clicks; usable in 2.5 s, and in half of upstream's seconds",
                "load": round(os.getloadavg()[0], 1),
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
