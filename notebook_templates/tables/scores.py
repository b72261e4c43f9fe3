"""How good predictions are, in the field's usual figures, and what one without a model has."""

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

Scores = dict[str, float | None]


def scores(labels: np.ndarray, predictions: np.ndarray) -> Scores:
    """Return AUC, log loss and accuracy, or RMSE, MAE and R2.

    ``predictions`` has shape (rows, classes) for classes, of which ``labels`` are positions, and
    (rows,) for numbers. ``None`` is a figure that these rows do not have, as AUC of one class.
    """
    if predictions.ndim == 1:
        return {
            "rmse": float(root_mean_squared_error(labels, predictions)),
            "mae": float(mean_absolute_error(labels, predictions)),
            "r2": float(r2_score(labels, predictions)) if len(labels) > 1 else None,
        }
    # In double precision, so that rows add up to 1 for scikit-learn.
    shares = predictions.astype(float)
    shares /= shares.sum(axis=1, keepdims=True)
    classes = shares.shape[1]
    auc = None
    if len(np.unique(labels)) == classes:
        of_class = shares[:, 1] if classes == 2 else shares
        auc = float(roc_auc_score(labels, of_class, multi_class="ovr"))
    return {
        "auc": auc,
        "log_loss": float(log_loss(labels, shares, labels=range(classes))),
        "accuracy": float(accuracy_score(labels, shares.argmax(axis=1))),
    }


def baseline(training: np.ndarray, classes: int, rows: int) -> np.ndarray:
    """Predict without looking: the shares of the classes, or the mean, of the training part.

    The likeliest class is then the majority's. Shape as of `scores`.
    """
    if not classes:
        return np.full(rows, training.mean())
    shares = np.bincount(training, minlength=classes) / len(training)
    return np.tile(shares, (rows, 1))
