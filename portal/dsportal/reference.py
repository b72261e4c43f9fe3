"""The reference page of the settings, made from the settings' own descriptions."""

import json
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from dsportal.settings.table import Table, named_tables, one_table
from dsportal.settings.whole import Settings

_HEAD = """\
# Settings

<!-- Made by `python -m dsportal.cli settings reference docs/reference/settings.md`: change
portal/dsportal/settings, not this page. -->

`portal.toml` (`/etc/data-scientist-portal/portal.toml`, or the file that the hub's variable
`PORTAL_SETTINGS` names) holds all settings of the portal. The hub reads it when it starts. An
unknown key, a wrong type or an impossible value stops the start with one line for each problem;
`portal settings check FILE` says the same without starting anything. Files
`conf.d/*.py` beside it are run last, in the order of their names; they see JupyterHub's `c` and
the checked `settings`.
"""
_TYPES: Mapping[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    tuple: "list of text",
    Mapping: "table of text",
}


def page() -> str:
    """Give the page as Markdown."""
    return "\n".join([_HEAD, *_sections(Settings, "")])


def _sections(table: type[Table], path: str) -> Iterator[str]:
    fields = table.model_fields
    keys = [name for name, field in fields.items() if not one_table(field)]
    keys = [name for name in keys if not named_tables(fields[name])]
    if path and keys:
        yield _section(table, path, str(table.__doc__), keys)
    for name, field in fields.items():
        if model := one_table(field):
            yield from _sections(model, f"{path}.{name}".lstrip("."))
        elif model := named_tables(field):
            keys = list(model.model_fields)
            yield _section(model, f"{path}.{name}.NAME".lstrip("."), str(field.description), keys)


def _section(table: type[Table], path: str, sentence: str, keys: list[str]) -> str:
    rows = "\n".join(_row(key, table.model_fields[key]) for key in keys)
    return (
        f"## [{path}]\n\n{sentence}\n\n"
        f"| key | type | unit | default | what it is |\n| --- | --- | --- | --- | --- |\n{rows}\n"
    )


def _row(key: str, field: FieldInfo) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    unit = str(extra.get("unit") or "")
    return (
        f"| `{key}` | {_type(field.annotation)}{_range(field)} | {unit} | {_default(field)} "
        f"| {field.description} |"
    )


def _type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return _type(get_args(annotation)[0])
    if origin is Literal:
        return " or ".join(f"`{json.dumps(choice)}`" for choice in get_args(annotation))
    if origin is tuple and _type(get_args(annotation)[0]) == _TYPES[int]:
        return "list of whole numbers"
    return _TYPES[origin or annotation]


def _range(field: FieldInfo) -> str:
    bounds = []
    for rule in field.metadata:
        if isinstance(rule, Ge):
            bounds.append(f"at least {rule.ge}")
        elif isinstance(rule, Gt):
            bounds.append(f"more than {rule.gt}")
        elif isinstance(rule, Le):
            bounds.append(f"at most {rule.le}")
    return f", {', '.join(bounds)}" if bounds else ""


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "must be set"
    if field.default is None:
        return "not set"
    return f"`{json.dumps(field.default)}`"
