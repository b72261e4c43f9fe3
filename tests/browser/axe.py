"""What axe-core, the accessibility checker, finds on a page."""

from functools import cache

import bootstrap
from playwright.sync_api import Page

_RUN = """
async (where) => {
  const found = await axe.run(where, { resultTypes: ["violations"] });
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target}: ${node.failureSummary}`));
}
"""


@cache
def _source() -> str:
    """Return the checker, which is among the tools of our extension of JupyterLab."""
    tools, _ = bootstrap.environment("lab-dev", bootstrap.CACHE / "environments")
    return (tools / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def faults(page: Page, where: str = "html") -> list[str]:
    """Return the serious and critical faults, one line each."""
    if page.evaluate("!window.axe"):
        # Not by the page's own means, which its Content-Security-Policy may forbid.
        page.evaluate(f"() => {{ {_source()}\n}}")
    return list(page.evaluate(_RUN, where))
