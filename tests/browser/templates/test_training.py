"""ResNet over two nodes from its notebook, watched in a real browser."""

import json
import pwd
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.lab import log_in, open_item, wait_for_launcher
from tests.instance import ROOT, USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[1]
TEMPLATE = ROOT / "notebook_templates" / "distributed" / "resnet.ipynb"
STEPS = 200
# What somebody would change to try it out: seconds instead of hours.
CHANGED = f"""
nodes = 2
gpus_per_node = 0
model = "tiny"
epochs = 30
batch = 128
precision = "fp32"
data = "~/isilon/datasets/mnist"
cores_per_process = 1
memory_mb_per_process = 1500
minutes = 10
runs_dir = "~/logs/browser"
more = {{"rate": 0.4, "report_every": 10, "checkpoint_every": 50, "steps": {STEPS}}}
"""


@pytest.fixture
def notebook(portal: Instance) -> Iterator[str]:
    """A copy of the template in the user's home, with small parameters; returns its name."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    for left in (".jupyter/lab/workspaces", "logs/browser"):
        portal.slurm("/bin/rm", "-rf", str(home / left), user=USER)
    content = json.loads(TEMPLATE.read_text())
    parameters = next(cell for cell in content["cells"] if cell["cell_type"] == "code")
    parameters["source"] = ["".join(parameters["source"]) + CHANGED]
    file = home / "resnet-small.ipynb"
    portal.slurm("/usr/bin/tee", str(file), user=USER, stdin=json.dumps(content))
    yield file.name
    visitor = Visitor(portal, USER)
    visitor.log_in()
    visitor.leave()
    visitor.close()
    portal.cancel(*portal.jobs(user=USER))


def test_a_training_is_watched_cancelled_and_resumed(
    portal: Instance, page: Page, notebook: str, photograph: Callable[[Page, str], None]
) -> None:
    log_in(page, portal, USER)
    page.get_by_role("radio", name=re.compile("^0|^No GPU", re.IGNORECASE)).check(force=True)
    page.get_by_role("button", name="Start").click()
    wait_for_launcher(page)
    open_item(page, notebook)
    expect(page.get_by_text("PyTorch 2.13 | Idle")).to_be_visible()
    page.get_by_role("button", name="Run All", exact=True).click()

    # It trains, and the notebook is free meanwhile.
    state = page.locator(".jp-OutputArea-output pre b").last
    expect(state).to_contain_text(re.compile("is running on .*node"), timeout=90_000)
    cancel = page.get_by_role("button", name="Cancel")
    resume = page.get_by_role("button", name="Resume")
    expect(page.get_by_text(re.compile(rf"step \d+ of {STEPS}: .* images/s, loss"))).to_be_visible(
        timeout=120_000
    )
    expect(
        page.locator(".jp-OutputArea-output img[src^='blob:'], .widget-image").last
    ).to_be_visible()
    expect(page.get_by_text("PyTorch 2.13 | Idle")).to_be_visible()
    expect(resume).to_be_disabled()

    cancel.click()
    expect(state).to_contain_text("cancelled", timeout=60_000)
    expect(cancel).to_be_disabled()

    resume.click()
    expect(state).to_contain_text("completed", timeout=120_000)
    expect(page.get_by_text(f"step {STEPS} of {STEPS}")).to_be_visible()
    expect(resume).to_be_disabled()
    link = page.get_by_role("link", name="TensorBoard")
    assert f"/user/{USER}/tensorboard/?folder=" in (link.get_attribute("href") or "")
    resume.scroll_into_view_if_needed()
    photograph(page, "training")
