"""LaTeX in a notebook as MathML, which browsers draw by themselves: no script, and no fonts."""

import re
from typing import Any

from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

_DELIMITED = re.compile(r"\s*(\$\$?)(?P<body>.+?)\1\s*", re.DOTALL)


def mathml(latex: str, *, is_block: bool) -> str | None:
    """Return what a browser draws; ``None`` where the LaTeX is not understood."""
    try:
        return str(convert(latex, display="block" if is_block else "inline"))
    except Exception:  # noqa: BLE001 - whatever somebody typed; it is shown as it was typed
        return None


class MathRenderer(IPythonRenderer):
    """Markdown as nbconvert shows it, with formulas drawn."""

    def block_math(self, body: str) -> str:
        """Draw what stands between double dollars."""
        return mathml(body, is_block=True) or str(super().block_math(body))

    def inline_math(self, body: str) -> str:
        """Draw what stands between dollars."""
        return mathml(body, is_block=False) or str(super().inline_math(body))

    def latex_environment(self, name: str, body: str) -> str:
        """Draw an environment, such as ``align``."""
        latex = f"\\begin{{{name}}}{body}\\end{{{name}}}"
        return mathml(latex, is_block=True) or str(super().latex_environment(name, body))


class MathExporter(HTMLExporter):
    """nbconvert's exporter, with the formulas of texts drawn."""

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """Turn the text of a cell into HTML; the template calls it."""
        renderer = MathRenderer(
            escape=False,
            attachments=context.get("cell", {}).get("attachments", {}),
            anchor_link_text=self.anchor_link_text,
            exclude_anchor_links=self.exclude_anchor_links,
        )
        return str(MarkdownWithMath(renderer=renderer).render(source))


def draw_outputs(notebook: Any) -> None:
    """Give the formulas that cells have put out, as SymPy does, a form that is drawn."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            _draw(output.get("data", {}))


def _draw(data: dict[str, Any]) -> None:
    latex = data.get("text/latex")
    found = _DELIMITED.fullmatch(latex) if isinstance(latex, str) else None
    drawn = mathml(found["body"], is_block=True) if found else None
    if drawn:
        data.setdefault("text/html", drawn)
