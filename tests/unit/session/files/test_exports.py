"""The formats that are offered are those that can be made."""

import pytest
from nbconvert.exporters import base
from traitlets.config import Config

from dsportal.session.files.exports import exporters


@pytest.mark.parametrize(
    ("programs", "offered"),
    [
        ((), set()),
        (("xelatex",), set()),
        (("pandoc",), {"latex", "rst", "asciidoc"}),
        (("pandoc", "xelatex"), {"latex", "rst", "asciidoc", "pdf"}),
    ],
)
def test_a_format_is_offered_where_the_node_can_make_it(
    programs: tuple[str, ...], offered: set[str]
) -> None:
    off = exporters(lambda name: f"/usr/bin/{name}" if name in programs else None)
    names = set(base.get_export_names(config=Config(off)))  # type: ignore[no-untyped-call]
    assert names & {"latex", "rst", "asciidoc", "pdf", "webpdf", "qtpdf", "qtpng"} == offered
    assert {"html", "markdown", "notebook", "script"} <= names
