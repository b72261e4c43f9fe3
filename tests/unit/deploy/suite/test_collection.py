"""To collect the tests needs nothing that only a test instance has."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[3]


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Give what runs when a module is imported: not what is in its functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import(child)


def test_nobody_is_looked_up_while_tests_are_collected() -> None:
    """The users of the instance are made by the first test that needs it."""
    found = [
        f"{source.relative_to(TESTS)}:{node.lineno}"
        for source in sorted(TESTS.rglob("*.py"))
        for node in at_import(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in {"getpwnam", "getgrnam", "getgrgid"}
    ]
    assert found == []
