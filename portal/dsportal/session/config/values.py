"""The values in a session's orders: each is of its kind, or an error names its key."""

from typing import Any


class OrdersError(ValueError):
    """The input is not what a session understands; the message names the key."""


def objects(key: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the object that a key holds; an empty one where the key is missing."""
    value = given.get(key, {})
    if not isinstance(value, dict):
        raise OrdersError(f"{key}: not an object")
    return value


def texts_by_name(key: str, value: Any) -> dict[str, str]:
    """Return an object whose values are texts."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise OrdersError(f"{key}: not an object of texts")
    return value


def texts(key: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise OrdersError(f"{key}: not a list of texts")
    return tuple(value)


def numbers(key: str, value: Any) -> tuple[int, ...]:
    """Return a list of whole numbers."""
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        raise OrdersError(f"{key}: not a list of whole numbers")
    return tuple(value)


def number(key: str, value: Any) -> int:
    """Return a whole number."""
    if type(value) is not int:
        raise OrdersError(f"{key}: not a whole number")
    return value


def true_or_false(key: str, value: Any) -> bool:
    """Return a yes or a no."""
    if not isinstance(value, bool):
        raise OrdersError(f"{key}: not true or false")
    return value


def text_or_none(key: str, value: Any) -> str | None:
    """Return a text; ``None`` for an empty one."""
    if value is not None and not isinstance(value, str):
        raise OrdersError(f"{key}: not a text")
    return value or None
