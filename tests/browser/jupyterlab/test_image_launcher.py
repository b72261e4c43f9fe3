"""Images in JupyterLab: a card for each kernel in one, and words where there is none."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import images
from tests.browser.jupyterlab.test_launcher import card
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor

pytestmark = pytest.mark.browser

USER = USERS[3]


@pytest.fixture
def own(portal: Instance, visit: Callable[[str], Visitor]) -> Iterator[Path]:
    """A user's folder with an image, and a file that is none; the user has a session."""
    visitor = visit(USER)
    visitor.start_and_wait(gpus=0)
    home = Path(visitor.run("import os; print(os.path.expanduser('~'))").strip())
    folder = home / "images"
    folder.mkdir()
    shutil.copy(images.kernel_image(), folder / "tools.sif")
    (folder / "notes.sif").write_text("no image")
    yield folder
    shutil.rmtree(folder)
    shutil.rmtree(home / ".cache/data-scientist-portal")


def test_an_image_has_a_card_and_what_is_none_says_why(
    portal: Instance, own: Path, page: Page, photograph: Callable[[Page, str], None]
) -> None:
    open_lab(page, portal, USER)
    # A page does not wait long for an image that is new: then it comes with the next one.
    expect(card(page, "Notebook", "Cannot be used · notes")).to_be_visible()
    page.reload()
    expect(card(page, "Notebook", "Python 3.11 · tools")).to_be_visible()
    photograph(page, "images")
    card(page, "Notebook", "Cannot be used · notes").click()
    words = re.compile(re.escape(f"{own}/notes.sif is no image: ") + ".*Apptainer")
    expect(page.get_by_role("dialog").get_by_text(words)).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="OK").click()
