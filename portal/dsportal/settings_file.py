"""The reader of ``portal.toml``: all that is wrong with it at once, each on one line.

A line says file and line, key, value, rule.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dsportal.settings.table import Table
from dsportal.settings.whole import Settings, table_at

VARIABLE = "PORTAL_SETTINGS"
"""The environment variable that names the file."""
_DEFAULT = "/etc/data-scientist-portal/portal.toml"
_LONGEST_VALUE_SHOWN = 60


class SettingsError(Exception):
    """The settings cannot be used; ``problems`` has one line for each reason."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def file_of(environment: Mapping[str, str]) -> Path:
    """Return the settings file that the environment names, or the usual one."""
    return Path(environment.get(VARIABLE) or _DEFAULT)


def load(file: Path) -> Settings:
    """Read and check a settings file; raise SettingsError with all that is wrong with it."""
    try:
        text = file.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: is not text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: is not TOML: {error}") from error
    lines = _line_numbers(text)
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        found = sorted(_problem(lines, detail) for detail in error.errors(include_url=False))
        problems = (
            f"{file}:{line}: {words}" if line else f"{file}: {words}" for line, words in found
        )
        raise SettingsError(*problems) from error


def check_part(text: str) -> None:
    """Check some of the settings, as JSON, before the others are known.

    Raises SettingsError with all that is wrong, but for missing keys and rules between keys.
    """
    try:
        Settings.model_validate(json.loads(text))
    except ValueError as error:
        if not isinstance(error, ValidationError):
            raise SettingsError(f"is not JSON: {error}") from error
        details = error.errors(include_url=False)
        wrong = sorted(_problem({}, each)[1] for each in details if not _may_be_elsewhere(each))
        if wrong:
            raise SettingsError(*wrong) from error


def _may_be_elsewhere(detail: ErrorDetails) -> bool:
    """Whether the other settings may have what is missing from some of them."""
    is_of_a_table = isinstance(detail["input"], Mapping | Table)
    return detail["type"] == "missing" or (detail["type"] == "rule" and is_of_a_table)


def _problem(lines: Mapping[str, int], detail: ErrorDetails) -> tuple[int, str]:
    """Say on which line (0: none), and in one line what is wrong: key, value, rule."""
    keys = [str(part) for part in detail["loc"] if isinstance(part, str) and part != "[key]"]
    shown = "" if detail["type"] in _WITHOUT_VALUE else f" = {_shown(keys, detail['input'])}"
    return _line_of(lines, keys), f"{_printable('.'.join(keys))}{shown}: {_words(detail, keys)}"


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)


def _words(detail: ErrorDetails, keys: list[str]) -> str:
    bounds: Mapping[str, Any] = detail.get("ctx", {})
    kind = detail["type"]
    if kind == "extra_forbidden":
        return "is not a known key" + _did_you_mean(keys)
    if kind in _TYPE_WORDS:
        return _TYPE_WORDS[kind]
    for bound, words in _BOUND_WORDS.items():
        if bound in bounds and kind != "literal_error":
            unit = _extra(keys, "unit")
            return f"must be {words} {bounds[bound]:g}{f' ({unit})' if unit else ''}"
    if kind == "literal_error":
        return f"must be {bounds['expected']}"
    return detail["msg"]


_WITHOUT_VALUE = {"missing", "extra_forbidden"}
_TYPE_WORDS = {
    "missing": "must be set",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a number that is finite",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "mapping_type": "must be a table",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}
_BOUND_WORDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def _did_you_mean(keys: list[str]) -> str:
    table = table_at(keys[:-1])
    near = difflib.get_close_matches(keys[-1], table.model_fields, n=1) if table else []
    return f"; did you mean {near[0]}?" if near else ""


def _extra(keys: list[str], name: str) -> str:
    table = table_at(keys[:-1])
    field = table.model_fields.get(keys[-1]) if table else None
    extra = field.json_schema_extra if field else None
    return str(extra.get(name) or "") if isinstance(extra, dict) else ""


def _shown(keys: list[str], value: object) -> str:
    if keys and _extra(keys, "secret"):
        return "(not shown)"
    if isinstance(value, Mapping | Table):
        return "{...}"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE_SHOWN else text[: _LONGEST_VALUE_SHOWN - 3] + "..."


_TABLE_LINE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY_LINE = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w.-]+)\s*=""")


def _line_numbers(text: str) -> Mapping[str, int]:
    """Find the lines of tables and keys; tomllib does not tell them."""
    numbers: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE_LINE.match(line):
            # Names in quotes are written like the others in the problems' lines.
            table = re.sub(r"[\"']", "", header[1])
            numbers.setdefault(table, number)
        elif key := _KEY_LINE.match(line):
            name = key[1].strip("\"'")
            numbers.setdefault(f"{table}.{name}" if table else name, number)
    return numbers


def _line_of(lines: Mapping[str, int], keys: list[str]) -> int:
    candidates: Iterator[str] = (".".join(keys[:end]) for end in range(len(keys), 0, -1))
    return next((lines[key] for key in candidates if key in lines), 0)
