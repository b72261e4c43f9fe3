"""Pages of ours that are outside JupyterLab: templates which lie beside what answers with them."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, Template


@cache
def page_of(file: Path) -> Template:
    """Read a page; what is put into it is escaped."""
    return Environment(autoescape=True).from_string(file.read_text(encoding="utf-8"))
