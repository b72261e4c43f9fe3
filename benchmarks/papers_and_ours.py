"""The page of the papers' tables: what reproduces each here, and how far.

    PYTHONPATH=notebook_templates/benchmarks python -m benchmarks.papers_and_ours PAGE

From notebook_templates/benchmarks/measurement/papers.json, through `papers`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from measurement import papers

HEAD = """\
# The papers and ours

<!-- Made by `benchmarks.papers_and_ours`: change
notebook_templates/benchmarks/measurement/papers.json, not this page. -->

Every table, figure and procedure with numbers in [the documents][], what reproduces it here, and
how far. *To the letter*: the same procedure, and on this project's own machine the same result
where it does not depend on the hardware. *Small here*: it runs, but not at the papers' size, as we
have no such GPUs and no such NAS; on a cluster that has them, use the same notebook with larger
settings. *Not run yet*: it is written, but needs hardware that we do not have.

Where a value has no framework, network version, card, precision or batch size (per GPU), our notes
of the document do not give it. Where pages are named, we read excerpts of them for this table; all
other values are from our notes alone.

[the documents]: ../explanation/measuring.md#the-documents-that-the-figures-come-from
"""
HOW_FAR = {"whole": "to the letter", "small": "small here", "unrun": "not run yet"}


def number(value: float, unit: str) -> str:
    """Write a value with its unit; a share as per cent.

    >>> number(6142, "images/s"), number(0.019, "share")
    ('6,142 images/s', '1.9 %')
    """
    if unit in ("port", "version"):
        return f"{value:g}"
    if unit == "share":
        return f"{100 * value:g} %"
    return f"{value:,g} {unit}" if value < 1e6 and value != int(value) else f"{value:,.0f} {unit}"


def place(notebook: str) -> str:
    """Write what reproduces a table; a notebook as its path among the templates."""
    return f"`templates/{notebook}`" if notebook.endswith((".ipynb", ".py")) else notebook


def rows(table: papers.PublishedTable) -> Iterator[str]:
    """Write a table's figures, one a line."""
    for one in table.figures:
        software = " ".join(part for part in (one.framework, one.version) if part)
        many = (f"{one.gpus} GPUs" if one.gpus > 1 else "1 GPU") if one.gpus else ""
        nodes = (f"{one.nodes} nodes" if one.nodes > 1 else "1 node") if one.nodes else ""
        words = (one.row, software, one.card, many, nodes, one.precision, one.note)
        batch = str(one.batch) if one.batch else ""
        cells = [", ".join(part for part in words if part), batch, number(one.value, one.unit)]
        yield f"| {' | '.join(cells)} |"


def page() -> str:
    """Write the page."""
    lines = [
        HEAD,
        "| document | table, figure or procedure | here | how far |",
        "| --- | --- | --- | --- |",
    ]
    for table in papers.TABLES:
        how = ". ".join(part for part in (HOW_FAR[table.reproduced], table.remark) if part)
        cells = [table.document, table.title, place(table.notebook), how]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("\n## All figures")
    for key, name in papers.DOCUMENTS.items():
        lines.append(f"\n### `{key}`: {name}")
        for table in papers.TABLES:
            if table.document == key:
                where = f" ({table.pages})" if table.pages else ""
                lines.append(
                    f"\n**{table.title}**{where}\n\n| what | batch | value |\n| --- | --- | --- |"
                )
                lines += rows(table)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
