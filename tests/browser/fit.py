"""Whether a page is fit to use: light and dark, on a desk and on a phone.

With ``PORTAL_LOOK=FOLDER`` the pictures of all these pages, and of JupyterLab's dialogs, are put
there, to be looked at.
"""

import itertools
import os
import re
from typing import Literal, get_args

from playwright.sync_api import Page

from tests.browser import axe

BRIGHTNESS = """
() => {
  const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g);
  return (Number(red) + Number(green) + Number(blue)) / 3;
}
"""
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
WIDTHS = (1440, 360)


def keep_picture(page: Page, seen: str) -> None:
    """Put a picture of the page there where pictures are wanted."""
    if folder := os.environ.get("PORTAL_LOOK"):
        name = re.sub(r"\W+", "-", seen)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def assert_is_fit_to_use(page: Page, where: str) -> None:
    """The page has no serious fault, light or dark, wide or narrow, and nothing is cut off.

    And what the hub speaks of is a session, never a server.
    """
    words = page.locator("body").inner_text()
    assert "/hub/" not in page.url or not re.search(r"\bservers?\b", words, re.IGNORECASE), where
    for scheme, width in itertools.product(SCHEMES, WIDTHS):
        page.set_viewport_size({"width": width, "height": 900})
        # Without the transitions between the two, whose colours are neither's.
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.wait_for_function(f"document.documentElement.dataset.bsTheme === '{scheme}'")
        seen = f"{where}, {scheme}, {width} px"
        keep_picture(page, seen)
        assert axe.faults(page) == [], seen
        assert page.evaluate("document.documentElement.scrollWidth") <= width, seen
        assert (page.evaluate(BRIGHTNESS) < 128) == (scheme == "dark"), seen
    page.set_viewport_size({"width": 1280, "height": 860})
    page.emulate_media(color_scheme="light")
