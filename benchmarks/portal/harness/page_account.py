"""Account of a page: what it fetches, and how long it computes (Chrome DevTools Protocol)."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from playwright.sync_api import Page


def medians(accounts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure of several loads of one page."""
    return {name: round(median(one[name] for one in accounts), 2) for name in accounts[0]}


class PageAccount:
    """What one page fetches and computes, as Chromium counts it."""

    def __init__(self, page: Page) -> None:
        self._browser = page.context.new_cdp_session(page)
        self._before: dict[str, float] = {}
        self._files = self._of_http2 = self._bytes = 0
        self._browser.on("Network.responseReceived", self._answered)
        self._browser.on("Network.loadingFinished", self._fetched)
        self._browser.send("Network.enable")
        self._browser.send("Performance.enable")

    def begins(self) -> None:
        """Count from now on."""
        self._before = self._computed()
        self._files = self._of_http2 = self._bytes = 0

    def figures(self) -> dict[str, float]:
        """Return what has come since."""
        computed = self._computed()
        return {
            "files": self._files,
            "over_http2": self._of_http2,
            "megabytes": self._bytes / 1e6,
            "computing_seconds": computed["TaskDuration"] - self._before["TaskDuration"],
            "script_seconds": computed["ScriptDuration"] - self._before["ScriptDuration"],
        }

    def _computed(self) -> dict[str, float]:
        metrics = self._browser.send("Performance.getMetrics")["metrics"]
        return {each["name"]: each["value"] for each in metrics}

    def _answered(self, event: dict[str, Any]) -> None:
        self._files += 1
        self._of_http2 += event["response"].get("protocol") == "h2"

    def _fetched(self, event: dict[str, Any]) -> None:
        self._bytes += int(event["encodedDataLength"])
