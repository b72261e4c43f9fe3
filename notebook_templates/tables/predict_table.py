#!/usr/bin/env python
"""Predict for a new table with a model that train_trees.py left.

    python predict_table.py --model run1/model --table new.csv --output predictions.csv

The table must have the model's columns and no others, but for the target and columns that the model
ignored, which come first in the predictions. Where the target is there, the scores are printed.
"""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "distributed"))
import boosting
import numpy as np
import pandas as pd
import table_files
from columns import Columns
from record import write_whole
from scores import scores
from table_files import TabularDataError


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--model", required=True, help="the folder model/ of a run")
    add("--table", required=True, help="the new table: CSV or Parquet")
    add("--output", required=True, help="a CSV file for the predictions")
    return parser.parse_args()


def told(table: pd.DataFrame, found: np.ndarray, model: Columns) -> pd.DataFrame:
    """Put predictions beside the columns that the model ignores; rows stay in their order."""
    beside = table[[name for name in model.left_out if name in table]]
    if not model.classes:
        return beside.assign(prediction=found)
    likeliest = np.asarray(model.classes, dtype=object)[found.argmax(axis=1)]
    shares = {f"probability {name}": found[:, at] for at, name in enumerate(model.classes)}
    return beside.assign(prediction=likeliest, **shares)


def main(s: argparse.Namespace) -> None:
    """Read, predict, write."""
    booster, model = boosting.read(Path(s.model).expanduser())
    table = table_files.read(Path(s.table).expanduser(), [*model.categories, *model.left_out])
    features, unknown = model.features(table)
    for name, count in unknown.items():
        print(f"{name}: {count:,} values are unknown categories, treated as missing")
    found = boosting.predictions(booster, features, len(model.classes))
    output = Path(s.output).expanduser()
    text = told(table, found, model).to_csv(index=False).encode()
    write_whole(output, lambda stream: stream.write(text))
    print(f"{len(table):,} predictions in {output}")
    if model.target in table and table[model.target].notna().all():
        for name, value in scores(model.labels(table), found).items():
            print(f"{name} {'unknown' if value is None else f'{value:.4f}'}")


if __name__ == "__main__":
    try:
        main(settings())
    except TabularDataError as error:
        sys.exit(str(error))
