"""Turns somebody else's notebook into a page: ``python -I -m dsportal.session.sharing.render``.

Reads the notebook on standard input, writes HTML. A process of its own with limits, since a
notebook may be made to keep its reader's busy, or fill its memory. What it writes is as hostile as
what it read: it is for a frame without scripts.
"""

import sys

import nbformat

from dsportal.session.files.bounded import bound
from dsportal.session.sharing.mathematics import MathExporter, draw_outputs

_CPU_SECONDS = 60
MOST_BYTES = 64 * 2**20
"""Of a page: the session's server has it in memory several times."""
# nbconvert has a light theme or a dark one; readers have either.
_BOTH_THEMES = """
{%- extends "index.html.j2" -%}
{%- block html_head_css -%}
{{ super() }}
<style>:root { color-scheme: light dark; }</style>
{{ resources.include_css("static/theme-dark.css")
   | replace("<style", '<style media="(prefers-color-scheme: dark)"') }}
{%- endblock -%}
"""


def page(content: str) -> str:
    """Return the notebook as one page that needs nothing from elsewhere."""
    notebook = nbformat.reads(content, as_version=4)  # type: ignore[no-untyped-call]
    draw_outputs(notebook)
    exporter = MathExporter(  # type: ignore[no-untyped-call]
        template_name="lab", embed_images=False, raw_template=_BOTH_THEMES
    )
    exporter.mathjax_url = exporter.require_js_url = exporter.jquery_url = ""
    html, _ = exporter.from_notebook_node(notebook)
    # A link leaves the frame, as it is not let lead it elsewhere.
    return str(html).replace("<head>", '<head><base target="_blank">', 1)


def main() -> int:
    """Do it; return 1 for a notebook whose page is longer than it may be."""
    bound(_CPU_SECONDS)
    content = sys.stdin.buffer.read().decode("utf-8", errors="replace")
    written = page(content).encode("utf-8", errors="replace")
    if len(written) > MOST_BYTES:
        return 1
    sys.stdout.buffer.write(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
