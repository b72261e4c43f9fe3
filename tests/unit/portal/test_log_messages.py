"""docs/how-to/log-messages.md explains what the portal logs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "log-messages.md"


METHODS = {"warning", "error", "exception", "critical"}


def logged(file: Path) -> Iterator[str]:
    """Give the texts of all warnings and errors that a module logs."""
    text = file.read_text(encoding="utf-8")
    # Most call none of them: to parse these as well takes each process of the tests a second.
    if not any(f".{method}(" in text for method in METHODS):
        return
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


MESSAGES = sorted(
    {
        message
        for folder in ("portal", "spawner")
        for file in (ROOT / folder).rglob("*.py")
        for message in logged(file)
    }
)


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 5


@pytest.mark.parametrize("message", MESSAGES)
def test_every_warning_and_error_is_explained(message: str) -> None:
    words = [re.escape(part) for part in re.split(r"%\w", message)]
    assert re.search(r"\S.*?".join(words), PAGE.read_text(encoding="utf-8")), message
