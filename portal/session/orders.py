"""What the hub says to a session, on its standard input."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class OrdersError(ValueError):
    """The input is not what a session understands; the message names the key."""


@dataclass(frozen=True)
class Orders:
    """One session's orders: one JSON object on one line."""

    environment: Mapping[str, str]
    folders: Mapping[str, str] = field(default_factory=dict)
    """Name of a link in the home -> the folder that it shows."""
    jupyter_path: tuple[str, ...] = ()
    """Folders whose ``kernels/`` holds kernel specs."""
    tensorboard_python: str | None = None
    """Interpreter of the environment that holds TensorBoard."""


def parse_orders(text: str) -> Orders:
    """Read what the hub wrote.

    Raises OrdersError for anything but an object with the keys of Orders;
    ``environment`` is required, the others are optional.
    """
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise OrdersError(f"not JSON: {error}") from error
    if not isinstance(given, dict):
        raise OrdersError("not a JSON object")
    unknown = sorted(set(given) - set(Orders.__dataclass_fields__))
    if unknown:
        raise OrdersError(f"unknown key: {', '.join(unknown)}")
    if "environment" not in given:
        raise OrdersError("missing key: environment")
    return Orders(
        environment=_texts_by_name("environment", given["environment"]),
        folders=_texts_by_name("folders", given.get("folders", {})),
        jupyter_path=_texts("jupyter_path", given.get("jupyter_path", [])),
        tensorboard_python=_text_or_none("tensorboard_python", given.get("tensorboard_python")),
    )


def _texts_by_name(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise OrdersError(f"{key}: not an object of texts")
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise OrdersError(f"{key}: not a list of texts")
    return tuple(value)


def _text_or_none(key: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise OrdersError(f"{key}: not a text")
    return value or None
