"""The base class of all tables of ``portal.toml``."""

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo


def setting(
    default: Any, sentence: str, *, unit: str = "", secret: bool = False, **rules: Any
) -> Any:
    """Describe one key: its default (``...`` for none), what it is for, its unit and its range.

    The value of a ``secret`` key is never shown.
    """
    return Field(
        default,
        description=sentence,
        json_schema_extra={"unit": unit, "secret": secret},
        repr=not secret,
        **rules,
    )


class Table(BaseModel):
    """A table of the file: unknown keys are refused, types are not converted, nothing changes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True
    )


def one_table(field: FieldInfo) -> type[Table] | None:
    """Give the model of a field that is a table."""
    model = field.annotation
    return model if isinstance(model, type) and issubclass(model, Table) else None


def named_tables(field: FieldInfo) -> type[Table] | None:
    """Give the model of a field that holds tables by names that the site chooses."""
    if get_origin(field.annotation) is not Mapping:
        return None
    model = get_args(field.annotation)[1]
    return model if isinstance(model, type) and issubclass(model, Table) else None
