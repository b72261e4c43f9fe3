"""Whether a page is fit to use: light and dark, on a desk and on a phone.

With ``PORTAL_LOOK=FOLDER`` the pictures of all these pages are put there, to be looked at.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from playwright.sync_api import Page, expect

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


def forms(
    page: Page, where: str, schemes: Iterable[Scheme] = SCHEMES
) -> Iterator[tuple[Scheme, str]]:
    """Give the page each of its forms in turn; say which brightness it has, and what to call it."""
    for scheme, width in itertools.product(schemes, WIDTHS):
        page.set_viewport_size({"width": width, "height": 900})
        # Without the transitions between the two, whose colours are neither's.
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        yield scheme, f"{where}, {scheme}, {width} px"


def _look(page: Page, seen: str, *, full_page: bool) -> None:
    if folder := os.environ.get("PORTAL_LOOK"):
        name = re.sub(r"\W+", "-", seen)
        page.screenshot(path=f"{folder}/{name}.png", full_page=full_page)


def assert_has_no_faults(page: Page, seen: str) -> None:
    """The page has no serious fault as it is, and nothing is cut off."""
    _look(page, seen, full_page=True)
    assert axe.faults(page) == [], seen
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), seen


def assert_is_fit_to_use(page: Page, where: str) -> None:
    """A page of the hub has no serious fault in any form, and nothing is cut off.

    And it speaks of a session, never of a server.
    """
    words = page.locator("body").inner_text()
    assert "/hub/" not in page.url or not re.search(r"\bservers?\b", words, re.IGNORECASE), where
    for scheme, seen in forms(page, where):
        page.wait_for_function(f"document.documentElement.dataset.bsTheme === '{scheme}'")
        assert_has_no_faults(page, seen)
        assert (page.evaluate(BRIGHTNESS) < 128) == (scheme == "dark"), seen
    page.set_viewport_size({"width": 1280, "height": 860})
    page.emulate_media(color_scheme="light")


def wait_for_theme(page: Page, scheme: Scheme) -> None:
    """Wait until JupyterLab is as light or as dark as the system is, and can be seen."""
    is_light = str(scheme == "light").lower()
    expect(page.locator(f'body[data-jp-theme-light="{is_light}"]')).to_be_attached()
    # It covers all while a theme is loaded.
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)


def assert_part_is_fit(
    page: Page,
    where: str,
    part: str,
    schemes: Iterable[Scheme] = SCHEMES,
    *,
    box: str | None = None,
) -> None:
    """A part of JupyterLab has no serious fault in any form, and does not leave the page.

    ``box`` is what is seen of the part, where that is not all of it, as of a dialog.
    """
    for scheme, seen in forms(page, where, schemes):
        wait_for_theme(page, scheme)
        _look(page, seen, full_page=False)
        assert axe.faults(page, part) == [], seen
        edges = page.locator(box or part).last.bounding_box()
        assert edges is not None, seen
        assert edges["x"] >= 0, seen
        # JupyterLab itself is wider than a phone.
        most = page.evaluate("innerWidth" if box else "document.documentElement.scrollWidth")
        assert edges["x"] + edges["width"] <= most, seen
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")


def assert_dialog_is_fit(page: Page, title: str, schemes: Iterable[Scheme] = SCHEMES) -> None:
    """The dialog of this title is open, and fit to use."""
    expect(page.locator(".jp-Dialog")).to_contain_text(title)
    assert_part_is_fit(page, title, ".jp-Dialog", schemes, box=".jp-Dialog-content")
