"""``portal size``: how much storage a number of GPUs needs."""

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from dsportal.sizing import measured, words
from dsportal.sizing.answer import answer
from dsportal.sizing.question import FIELDS, Choice, SizingError, question
from dsportal.sizing.words import SizingRow


def add_options(described: argparse.ArgumentParser) -> None:
    """Say what may be asked: the fields of the page's form."""
    for name, field in FIELDS.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(field, Choice):
            said = f"{field.label}: {', '.join(field.choices)} (default: {field.default})"
            described.add_argument(option, metavar="WORD", help=said)
            continue
        said = ", ".join(part for part in (field.label, field.unit, field.note) if part)
        default = f" (default: {field.default})" if field.default else ""
        described.add_argument(option, metavar="N", help=said + default)
    described.add_argument(
        "--measured",
        metavar="SUMMARY",
        type=Path,
        action="append",
        default=[],
        help="take your own figures from a benchmark's summary.json: of training the speed of one "
        "GPU, of storage what one mount reads; may be given again",
    )


def main() -> int:
    """Answer users, who have this command alone."""
    about = "Say how much storage GPUs need."
    parser = argparse.ArgumentParser(prog="portal size", description=about)
    add_options(parser)
    return run(parser.parse_args())


def run(options: argparse.Namespace) -> int:
    """Answer; say in words why not."""
    try:
        given = measured.figures(options.measured)
        given |= {name: value for name in FIELDS if (value := getattr(options, name)) is not None}
        asked = question(given)
        found = answer(asked)
    except SizingError as error:
        for name, fault in error.faults.items():
            sys.stderr.write(f"portal size: --{name.replace('_', '-')}: {fault}\n")
        return 2
    paragraphs = [textwrap.fill(text, 88) for text in (words.ADVICE, words.LEFT_OUT)]
    text = [words.title(asked), _table(words.rows(asked, found)), *paragraphs]
    sys.stdout.write("\n\n".join(text) + "\n")
    return 0


def _table(rows: Sequence[SizingRow]) -> str:
    what = max(len(row.what) for row in rows)
    value = max(len(row.value) for row in rows)
    return "\n".join(f"{row.what:<{what}}  {row.value:>{value}}  {row.how}" for row in rows)
