"""Boosted trees: what XGBoost is told, where it computes, and its state between two rounds."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from columns import Columns
from ranks import cores_of_task
from record import write_json, write_whole
from table_files import TabularDataError

MODEL, COLUMNS = "model.ubj", "columns.json"
_BEST_ROUND, _BEST_LOSS = "best_iteration", "best_score"  # XGBoost's own names for these


def threads_of_job(variables: Mapping[str, str]) -> int:
    """Return the CPUs that Slurm gave, also where it does not bind processes to them."""
    return cores_of_task(len(os.sched_getaffinity(0)), 1, variables)


def device_of(wanted: str) -> str:
    """Return ``cuda`` or ``cpu``; ``auto`` is a GPU where there is one.

    Raises `TabularDataError` where ``cuda`` is wanted and cannot be had, which XGBoost hardly says.
    """
    if wanted == "cpu":
        return wanted
    has_gpu = False
    if xgboost.build_info().get("USE_CUDA"):
        import torch  # seconds, which a build for CPUs need not wait

        has_gpu = torch.cuda.is_available()
    if wanted == "cuda" and not has_gpu:
        raise TabularDataError(
            "device is 'cuda'; this process sees no GPU, or XGBoost is not built for"
        )
    return "cuda" if has_gpu else "cpu"


def objective(classes: int) -> dict[str, Any]:
    """Return what is learned, and the loss that is looked at, for so many classes; 0: numbers."""
    if not classes:
        return {"objective": "reg:squarederror", "eval_metric": "rmse"}
    if classes == 2:
        return {"objective": "binary:logistic", "eval_metric": "logloss"}
    return {"objective": "multi:softprob", "eval_metric": "mlogloss", "num_class": classes}


@dataclass
class Trees:
    """A model that grows, with the round that was best on the validation part."""

    booster: xgboost.Booster
    best_round: int = -1
    """From 0; -1: none yet."""
    best_loss: float = float("inf")

    @classmethod
    def begun(
        cls, parameters: Mapping[str, Any], seed: int, kept: bytes, *parts: xgboost.DMatrix
    ) -> "Trees":
        """Begin, or go on with what `kept` returned.

        XGBoost keeps neither its random numbers nor the sums of the trees so far. A training that
        begins at each checkpoint in this way, interrupted or not, therefore gets the same trees.
        """
        rounds = xgboost.Booster(model_file=bytearray(kept)).num_boosted_rounds() if kept else 0
        drawn = {"seed": (seed * 1_000_003 + rounds) % 2**31}
        model = bytearray(kept) if kept else None
        trees = cls(xgboost.Booster({**parameters, **drawn}, cache=parts, model_file=model))
        attributes = trees.booster.attributes()
        if _BEST_ROUND in attributes:
            trees.best_round = int(attributes[_BEST_ROUND])
            trees.best_loss = float(attributes[_BEST_LOSS])
        return trees

    @property
    def rounds(self) -> int:
        """That were done."""
        return int(self.booster.num_boosted_rounds())

    def grow(self, train: xgboost.DMatrix, validation: xgboost.DMatrix) -> tuple[float, float]:
        """Do a round; return the loss on both parts."""
        number = self.rounds
        self.booster.update(train, number)
        said = self.booster.eval_set([(train, "train"), (validation, "validation")], number)
        losses = [float(word.rpartition(":")[2]) for word in said.split()[1:]]
        if losses[1] < self.best_loss:
            self.best_round, self.best_loss = number, losses[1]
        return losses[0], losses[1]

    def checkpoint(self) -> bytes:
        """Return what is in a checkpoint."""
        noted = {_BEST_ROUND: str(self.best_round), _BEST_LOSS: repr(self.best_loss)}
        self.booster.set_attr(**noted)
        return bytes(self.booster.save_raw("ubj"))

    def best(self) -> "Trees":
        """Return the model without the rounds after the best."""
        return Trees(self.booster[: self.best_round + 1], self.best_round, self.best_loss)


def train_once(
    parameters: Mapping[str, Any], train: xgboost.DMatrix, validation: xgboost.DMatrix
) -> None:
    """Do a round that nobody keeps, before a process goes on with a model that another has left.

    On a GPU (XGBoost 3.2.0 and 3.4.1, H100) such a process ends by SIGSEGV in its first round;
    one that has trained on the same data before reads a model and goes on.
    """
    Trees(xgboost.Booster(dict(parameters), cache=(train, validation))).grow(train, validation)


def matrix(features: pd.DataFrame) -> xgboost.DMatrix:
    """Give XGBoost features to predict from."""
    return xgboost.DMatrix(features, enable_categorical=True)


def predictions(booster: xgboost.Booster, features: pd.DataFrame, classes: int) -> np.ndarray:
    """Return numbers, shape (rows,), or a probability for each class, shape (rows, classes)."""
    found = np.asarray(booster.predict(matrix(features)))
    return np.column_stack([1 - found, found]) if classes == 2 else found


def save(file: Path, trees: Trees) -> bytes:
    """Write a checkpoint, whole or not at all, and return what is in it."""
    content = trees.checkpoint()
    write_whole(file, lambda stream: stream.write(content))
    return content


def write(folder: Path, trees: Trees, columns: Columns) -> None:
    """Write the model in XGBoost's own format, and beside it what it knows of the columns."""
    folder.mkdir(exist_ok=True)
    write_json(folder / COLUMNS, columns.to_json())
    save(folder / MODEL, trees)


def read(folder: Path) -> tuple[xgboost.Booster, Columns]:
    """Read what `write` wrote; raises `TabularDataError` where there is none."""
    try:
        columns = Columns.from_json((folder / COLUMNS).read_text())
        return xgboost.Booster(model_file=folder / MODEL), columns
    except (OSError, xgboost.core.XGBoostError) as error:
        raise TabularDataError(f"{folder} has no {MODEL} with {COLUMNS} beside it") from error
