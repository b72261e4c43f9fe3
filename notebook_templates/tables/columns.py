"""What a model knows of a table's columns: names, which are numbers, the categories of the others.

Categories are those of the training part. Others are missing values to the model, and are counted.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype
from table_files import TabularDataError

MOST_CLASSES = 20
"""A target of whole numbers is one of classes if there are at most so many of them."""
MOST_CATEGORIES = 1000
"""A column of texts that has more, or more than half as many as rows, is left out."""
VERSION = 1
BOOLEANS = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}
"""How else a CSV file may write them: pandas takes a column of these for booleans."""
NOT_IN_NAMES = "[]<"  # XGBoost refuses these in a feature's name


@dataclass(frozen=True)
class Columns:
    """What a model was trained on."""

    target: str
    classes: tuple[str, ...]
    """In the order of the model's probabilities; empty for a regression."""
    names: tuple[str, ...]
    """Of the features, in the model's order."""
    categories: Mapping[str, tuple[str, ...]]
    """Of the features that are not numbers."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Other columns of the table, and why the model does not look at them."""

    def features(self, table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
        """Return the features, and how many values of each are categories that are not known.

        Raises `TabularDataError` for a table with other columns, or texts in the place of numbers.
        """
        known = {*self.names, self.target, *self.left_out}
        missing = [repr(name) for name in self.names if name not in table]
        other = [repr(name) for name in table if name not in known]
        if missing or other:
            words = [f"has no column {', '.join(missing)}"] * bool(missing)
            words += [f"has {', '.join(other)}, which the model does not know"] * bool(other)
            raise TabularDataError(f"the table {' and '.join(words)}")
        columns, unknown = {}, {}
        for name in self.names:
            if name not in self.categories:
                columns[name] = _numbers(table[name])
                continue
            texts = as_text(table[name])
            if set(self.categories[name]) <= set(BOOLEANS.values()):
                texts = texts.replace(BOOLEANS)
            values = pd.Categorical(
                texts.where(texts.isin(self.categories[name])), self.categories[name]
            )
            if count := int(values.isna().sum() - texts.isna().sum()):
                unknown[name] = count
            columns[name] = pd.Series(values, index=table.index)
        return pd.DataFrame(columns, index=table.index), unknown

    def labels(self, table: pd.DataFrame) -> np.ndarray:
        """Return the target's values: numbers, or positions in ``classes``; shape (rows,).

        Raises `TabularDataError` for a class that the model does not know, and for missing values.
        """
        target = table[self.target]
        if target.isna().any():
            raise TabularDataError(f"{self.target!r} has {int(target.isna().sum())} missing values")
        if not self.classes:
            return _numbers(target).to_numpy(dtype=float)
        codes = pd.Index(self.classes).get_indexer(pd.Index(as_text(target)))
        if (codes < 0).any():
            strange = sorted(set(as_text(target)[codes < 0]))[:5]
            raise TabularDataError(
                f"{self.target!r} has classes that are not the model's: {strange}"
            )
        return codes

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, text: str) -> "Columns":
        """Read what `to_json` returned; raises `TabularDataError` for another version's."""
        kept = json.loads(text)
        if kept.pop("version", None) != VERSION:
            raise TabularDataError(
                f"columns.json is of another version than {VERSION}: train again"
            )
        categories = {name: tuple(values) for name, values in kept.pop("categories").items()}
        classes, names = tuple(kept.pop("classes")), tuple(kept.pop("names"))
        return cls(classes=classes, names=names, categories=categories, **kept)


def as_text(values: pd.Series) -> pd.Series:
    """Return values as texts, whole numbers without ``.0``; missing ones stay missing."""
    if is_float_dtype(values) and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    return values.astype(object).map(str, na_action="ignore")


def classes_of(table: pd.DataFrame, target: str, task: str) -> tuple[str, ...]:
    """Return the target's classes, none for a regression; ``auto`` as ``task`` lets the column say.

    Texts are classes, and so are up to `MOST_CLASSES` different whole numbers. Raises
    `TabularDataError` for a target that is not there or has one value only.
    """
    if target not in table:
        raise TabularDataError(f"target is {target!r}; the table has {', '.join(map(repr, table))}")
    values = table[target].dropna()
    found = values.unique()
    if len(found) < 2:
        raise TabularDataError(
            f"{target!r} has {len(found)} different values: there is nothing to learn"
        )
    numbers = is_numeric_dtype(values) and not is_bool_dtype(values)
    if task == "regression":
        _numbers(values)
        return ()
    few_whole = numbers and len(found) <= MOST_CLASSES and bool((values % 1 == 0).all())
    if task == "auto" and numbers and not few_whole:
        return ()
    texts = as_text(values).unique()
    return tuple(sorted(texts, key=float) if numbers else sorted(texts))


def learned_from(
    training: pd.DataFrame,
    target: str,
    classes: tuple[str, ...],
    categorical: Collection[str],
    ignore: Collection[str],
) -> Columns:
    """Look at the training part: ``categorical`` are categories although they may be numbers.

    Raises `TabularDataError` for a column that is not there, and where no column is left.
    """
    for name in (*categorical, *ignore):
        if name not in training or name == target:
            raise TabularDataError(f"{name!r} is not a column beside the target {target!r}")
    if wrong := [name for name in training if set(name) & set(NOT_IN_NAMES)]:
        raise TabularDataError(
            f"rename column {wrong[0]!r}: XGBoost allows none of {NOT_IN_NAMES} in names"
        )
    categories: dict[str, tuple[str, ...]] = {}
    names, left_out = [], {name: "ignored" for name in ignore}
    for name in training.columns.drop([target, *ignore]):
        values = training[name]
        if name in categorical or not is_numeric_dtype(values) or is_bool_dtype(values):
            texts = as_text(values).dropna()
            found = sorted(texts.unique())
            if not found:
                left_out[name] = "no value in the rows to train on"
                continue
            if len(found) > min(MOST_CATEGORIES, max(2, len(texts) / 2)):
                left_out[name] = f"{len(found):,} different texts in {len(texts):,} rows"
                continue
            categories[name] = tuple(found)
        names.append(name)
    if not names:
        raise TabularDataError("no column is left to learn from")
    return Columns(target, classes, tuple(names), categories, left_out)


def parts(
    labels: np.ndarray, classes: int, validation: float, test: float, seed: int
) -> dict[str, np.ndarray]:
    """Draw the rows to train on, to validate with and to test with: name -> positions.

    Of each class the same share is in each part; ``labels`` are positions in the classes. Raises
    `TabularDataError` where a part would be empty.
    """
    if not (validation > 0 and test > 0 and validation + test < 1):
        raise TabularDataError(
            f"validation is {validation}, test {test}; both are shares, together < 1"
        )
    order = np.random.default_rng(seed).permutation(len(labels))
    groups = [order[labels[order] == code] for code in range(classes)] if classes else [order]
    drawn: dict[str, list[np.ndarray]] = {"train": [], "validation": [], "test": []}
    for group in groups:
        first = round(len(group) * validation)
        second = first + round(len(group) * test)
        pieces = (group[second:], group[:first], group[first:second])
        for kept, piece in zip(drawn.values(), pieces, strict=True):
            kept.append(piece)
    found = {name: np.sort(np.concatenate(pieces)) for name, pieces in drawn.items()}
    if empty := [name for name, rows in found.items() if not len(rows)]:
        raise TabularDataError(f"{len(labels)} rows are too few: none is left for {empty[0]}")
    return found


def _numbers(values: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    strange = values[numbers.isna() & values.notna()]
    if len(strange):
        raise TabularDataError(
            f"{values.name!r} is a column of numbers; {len(strange):,} values are not, such as "
            f"{strange.iloc[0]!r}"
        )
    if numbers.map(math.isinf).any():
        raise TabularDataError(
            f"{values.name!r} has infinite values: replace them, or leave them empty"
        )
    return numbers
