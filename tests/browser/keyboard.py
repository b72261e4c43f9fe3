"""A page by keyboard alone: Tab leads to whatever is needed, and Enter does it."""

import pytest
from playwright.sync_api import Locator, Page, expect

# The user may have many tokens, and each of them takes two.
_MOST_TABS = 300
_MOST_ARROWS = 30
# How a person sees where they are.
_IS_MARKED = """
() => {
  const active = document.activeElement;
  const parts = [active, ...(active.shadowRoot?.querySelectorAll("*") ?? [])];
  return parts.some((part) => {
    const look = getComputedStyle(part);
    return look.outlineStyle !== "none" || look.boxShadow !== "none";
  });
}
"""


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the focus is there, and can be seen there."""
    expect(wanted).to_be_enabled()
    for _ in range(_MOST_TABS):
        if wanted.evaluate("element => element === document.activeElement"):
            assert page.evaluate(_IS_MARKED)
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not lead to {wanted}")


def arrow_to(page: Page, arrow: str, wanted: Locator) -> None:
    """Press an arrow until the focus is there or in it, among tabs, buttons or a tree."""
    for _ in range(_MOST_ARROWS):
        if wanted.evaluate("element => element.matches(':focus-within')"):
            return
        page.keyboard.press(arrow)
    pytest.fail(f"{arrow} does not lead to {wanted}")


def press(page: Page, wanted: Locator) -> None:
    """Go there, and press Enter."""
    tab_to(page, wanted)
    page.keyboard.press("Enter")
