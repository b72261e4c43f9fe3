"""MLflow: a run that a kernel has logged, seen in the launcher's card of the same session."""

import pwd
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Response, expect

from tests.browser.jupyterlab.test_launcher import card
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[2]
LOGGED = """
import mlflow
mlflow.set_experiment("digits")
for rate in (0.1, 0.03):
    with mlflow.start_run(run_name=f"rate {rate}"):
        mlflow.log_params({"rate": rate, "batch": 64})
        for step in range(1, 21):
            mlflow.log_metric("loss", 2.3 * (1 - rate) ** step, step=step)
        mlflow.log_text("the end of it", "words.txt")
"""


@pytest.fixture
def user(visit: Callable[[str], Visitor]) -> Iterator[Visitor]:
    """A user with a session, who has logged two runs from a notebook's kernel."""
    folder = Path(pwd.getpwnam(USER).pw_dir) / "mlflow"
    shutil.rmtree(folder, ignore_errors=True)
    visitor = visit(USER)
    visitor.start_and_wait(gpus=0)
    said = visitor.run(LOGGED, kernel="pytorch", seconds=180)
    assert "Error" not in said, said
    # Otherwise both the kernel and the card would make a place in the home, and agree.
    assert folder.is_dir(), said
    yield visitor
    visitor.stop()
    shutil.rmtree(folder)


def test_a_run_from_a_kernel_is_in_the_card(
    portal: Instance, user: Visitor, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    open_lab(page, portal, USER)
    with page.expect_popup() as popup:
        card(page, "Tools", "MLflow").click()
    tool = popup.value
    address = f"{portal.url}/user/{USER}/tools/mlflow/"
    bad: list[str] = []

    def note(response: Response) -> None:
        # It asks who is logged in to MLflow itself: nobody is.
        if response.url == f"{address}ajax-api/2.0/mlflow/users/current":
            return
        if response.status >= 400 or not response.url.startswith((address, "data:", "blob:")):
            bad.append(f"{response.status} {response.url}")

    # It says at first that it starts.
    expect(tool).to_have_title("MLflow", timeout=200_000)
    tool.on("response", note)
    tool.goto(f"{address}#/experiments")
    tool.reload()
    tool.get_by_text("Model training", exact=True).click()
    tool.get_by_role("link", name="digits", exact=True).first.click()
    # The list comes by a request that pages of other hosts may not send.
    expect(tool.get_by_role("link", name="rate 0.1", exact=True)).to_be_visible()
    tool.get_by_role("link", name="rate 0.03", exact=True).click()
    expect(tool.get_by_role("heading", name="rate 0.03")).to_be_visible()
    expect(tool.get_by_text("Finished", exact=True)).to_be_visible()
    tool.get_by_role("tab", name="Artifacts").click()
    tool.get_by_text("words.txt").first.click()
    expect(tool.get_by_text("the end of it")).to_be_visible()
    tool.get_by_role("tab", name="Model metrics").click()
    expect(tool.locator(".js-plotly-plot")).to_be_visible()
    assert bad == []
    photograph(tool, "mlflow")
