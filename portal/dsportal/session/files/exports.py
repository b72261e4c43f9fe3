"""Export formats in File > Save and Export As: those that this node can make, and no other."""

import shutil
from collections.abc import Callable

# The names of nbconvert's classes (7.x), as its configuration has them.
_NEVER = ("WebPDFExporter", "QtPDFExporter", "QtPNGExporter")
"""They draw the page in a browser of their own, which no session has."""
_OF_PANDOC = ("LatexExporter", "RSTExporter", "ASCIIDocExporter")
"""They turn Markdown into something else with pandoc."""
_OF_TEX = ("PDFExporter",)

_Which = Callable[[str], str | None]


def exporters(which: _Which = shutil.which) -> dict[str, dict[str, bool]]:
    """Say which of nbconvert's exporters are off: a menu must not have what fails.

    File > Print makes a PDF in the user's browser, whatever the node has.
    """
    has_pandoc = which("pandoc") is not None
    has_tex = has_pandoc and which("xelatex") is not None
    absent = [
        *_NEVER,
        *([] if has_pandoc else _OF_PANDOC),
        *([] if has_tex else _OF_TEX),
    ]
    return {name: {"enabled": False} for name in absent}
