"""Which columns a model looks at: how much they help its trees, and what it loses without them."""

import numpy as np
import pandas as pd
import xgboost
from boosting import predictions
from columns import Columns
from scores import scores

MOST_ROWS = 20_000
REPEATS = 3


def gain(booster: xgboost.Booster, columns: Columns) -> dict[str, float]:
    """Return each column's share of what all splits of the trees gained; a column unused has 0."""
    total = booster.get_score(importance_type="total_gain")
    whole = sum(total.values()) or 1.0
    return {name: float(total.get(name, 0.0)) / whole for name in columns.names}


def permutation(
    booster: xgboost.Booster,
    columns: Columns,
    features: pd.DataFrame,
    labels: np.ndarray,
    seed: int,
) -> dict[str, float]:
    """Return by how much the loss grows where one column's values are shuffled: log loss, or RMSE.

    The mean of `REPEATS` times, on at most `MOST_ROWS` rows. Of two columns that say the same both
    come out low: the model has the other one.
    """
    draw = np.random.default_rng(seed)
    if len(labels) > MOST_ROWS:
        chosen = np.sort(draw.choice(len(labels), MOST_ROWS, replace=False))
        features, labels = features.iloc[chosen], labels[chosen]
    classes = len(columns.classes)
    figure = "log_loss" if classes else "rmse"

    def loss(table: pd.DataFrame) -> float:
        return float(scores(labels, predictions(booster, table, classes))[figure] or 0.0)

    whole, found = loss(features), {}
    for name in columns.names:
        losses = []
        for _ in range(REPEATS):
            shuffled = features[name].iloc[draw.permutation(len(features))].set_axis(features.index)
            losses.append(loss(features.assign(**{name: shuffled})))
        found[name] = float(np.mean(losses)) - whole
    return found
