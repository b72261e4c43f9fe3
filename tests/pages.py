"""The documentation's pages, for tests that follow them."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from tests.instance import ROOT

HOW_TOS = ROOT / "docs/how-to"


def blocks(page: Path, *languages: str) -> list[str]:
    """Return a page's blocks of these languages, without their indentation."""
    kind = "|".join(languages)
    found = re.findall(rf"^( *)```(?:{kind})\n(.*?)^ *```$", page.read_text("utf-8"), re.M | re.S)
    return [re.sub(rf"(?m)^{indent}", "", text) for indent, text in found]


def commands(block: str) -> str:
    """Return what is typed: with a prompt only the lines that have one."""
    lines = [line.strip() for line in block.splitlines()]
    typed = [line[2:] for line in lines if re.match(r"[$#] \S", line)]
    # Without one a line that begins with # is a comment.
    return (
        "\n".join(typed if lines[0] == f"{lines[0][0]} {typed[0]}" else lines) if typed else block
    )


def how_to(name: str, number: int = 0, words: Mapping[str, str] | None = None) -> str:
    """Return what a how-to has its reader type in one of its blocks.

    ``words``: what stands in the place of words that a reader replaces; each must be there.
    """
    text = commands(blocks(HOW_TOS / name, "console", "sh")[number])
    return replaced(text, words or {})


def replaced(text: str, words: Mapping[str, str]) -> str:
    """Put other words in the place of some, all of which must be there."""
    for word, other in words.items():
        assert word in text, f"{word!r} is not in {text!r}"
        text = text.replace(word, other)
    return text


def lines(text: str) -> list[list[str]]:
    """Return each command's words as a shell would, without comments."""
    return [shlex.split(line, comments=True) for line in text.replace("\\\n", "").splitlines()]
