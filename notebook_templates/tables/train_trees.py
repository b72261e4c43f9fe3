#!/usr/bin/env python
"""Train gradient-boosted trees on a table, on a CPU or a GPU.

    python train_trees.py --results run1 --table ~/my.csv --target price

Columns of texts are categories; empty fields are missing values. Run again, it resumes where it
stopped.

In RESULTS stay progress.jsonl, summary.json with the scores and the importance of columns, model/
(model.ubj, columns.json: for predict_table.py, and the first for XGBoost alone), checkpoint.ubj,
tensorboard/, and error.txt when it failed.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

# A copy of this file finds the modules in the templates.
sys.path += [
    str(place / name)
    for place in (Path("~/templates").expanduser(), Path(__file__).resolve().parents[1])
    for name in ("tables", "distributed")
]
import boosting
import columns
import customers
import importance
import table_files
import xgboost
from ranks import place
from record import Record, ResumeError, Stop, run, same_run
from scores import baseline, scores
from table_files import TabularDataError


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results")
    add("--table", default=customers.NAME, help="CSV or Parquet; 'customers': one made here")
    add("--target", default=customers.TARGET, help="the column to predict")
    add("--task", default="auto", choices=("auto", "classification", "regression"))
    add("--ignore", type=json.loads, default=[], help="columns to leave out: '[\"id\"]'")
    add("--categorical", type=json.loads, default=[], help="numbers that are categories, as JSON")
    add("--validation", type=float, default=0.2, help="share of rows that say when to stop")
    add("--test", type=float, default=0.2, help="share of rows that are looked at once, at the end")
    add("--rounds", type=int, default=2000, help="of boosting, at most; more continue a run")
    add("--early-stopping-rounds", type=int, default=50, help="without a lower validation loss")
    add("--learning-rate", type=float, default=0.1, help="share of a tree that counts")
    add("--max-depth", type=int, default=6, help="of a tree")
    add("--min-child-weight", type=float, default=1.0, help="of a leaf: higher is more careful")
    add("--subsample", type=float, default=0.8, help="share of rows that a tree sees")
    add("--colsample-bytree", type=float, default=0.8, help="share of columns that a tree sees")
    add("--reg-lambda", type=float, default=1.0, help="L2 penalty of the leaves")
    add("--max-bin", type=int, default=256, help="steps into which numbers are cut")
    add("--device", default="auto", choices=("auto", "cpu", "cuda"), help="auto: a GPU if any")
    add("--workers", type=int, default=0, help="threads; 0: as many as the job has CPUs")
    add("--seed", type=int, default=1, help="of the split and of what trees see")
    add("--report-every", type=int, default=5, help="rounds between two lines of progress")
    add("--checkpoint-rounds", type=int, default=100, help="between checkpoints; part of the run")
    return parser.parse_args()


def parameters(s: argparse.Namespace, classes: int) -> dict[str, Any]:
    """Return what XGBoost is told."""
    same = (
        *("learning_rate", "max_depth", "min_child_weight", "subsample", "colsample_bytree"),
        *("reg_lambda", "max_bin", "device"),
    )
    chosen = {name: getattr(s, name) for name in same}
    return {"tree_method": "hist", "nthread": s.workers, **boosting.objective(classes), **chosen}


def main(s: argparse.Namespace) -> None:
    """Train: the story from top to bottom."""
    for name in ("rounds", "early_stopping_rounds", "report_every", "checkpoint_rounds"):
        if getattr(s, name) < 1:
            raise TabularDataError(f"{name} is {getattr(s, name)}; it must be at least 1")
    if place(os.environ).ranks > 1:
        raise TabularDataError("trees are trained by one process: ask Slurm for one task")
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    s.device = boosting.device_of(s.device)
    s.workers = s.workers or boosting.threads_of_job(os.environ)

    # The table, and what was reached with it before.
    if s.table == customers.NAME:
        file = customers.write(results, s.seed)
    else:
        file = Path(s.table).expanduser().resolve()
    checkpoint = results / "checkpoint.ubj"
    asked = {**vars(s), "table": str(s.table), "table_sha256": table_files.digest(file)}
    is_begun = checkpoint.exists() or (results / "summary.json").exists()
    same_run(results, argparse.Namespace(**asked), 1, True, is_begun)
    kept = checkpoint.read_bytes() if checkpoint.exists() else b""

    # What is learned from what.
    table = table_files.read(file, s.categorical)
    classes = columns.classes_of(table, s.target, s.task)
    known = table[table[s.target].notna()].reset_index(drop=True)
    labels = columns.Columns(s.target, classes, (), {}).labels(known)
    rows = columns.parts(labels, len(classes), s.validation, s.test, s.seed)
    training = known.iloc[rows["train"]]
    model = columns.learned_from(training, s.target, classes, s.categorical, s.ignore)
    features, unknown = model.features(known)
    part = {name: (features.iloc[chosen], labels[chosen]) for name, chosen in rows.items()}
    names = {"enable_categorical": True, "max_bin": s.max_bin, "nthread": s.workers}
    train = xgboost.QuantileDMatrix(part["train"][0], label=part["train"][1], **names)
    validation = xgboost.QuantileDMatrix(
        part["validation"][0], label=part["validation"][1], ref=train, **names
    )

    told = parameters(s, len(classes))
    if kept:
        boosting.train_once(told, train, validation)
    trees = boosting.Trees.begun(told, s.seed, kept, train, validation)
    record = Record(results, True, trees.rounds)
    what = f"{len(classes)} classes" if classes else "a number"
    record.say(
        f"{file.name}: {what} ({s.target}) from {len(model.names)} columns, "
        f"{len(model.categories)} of them categories",
        ", ".join(f"{len(chosen):,} rows for {name}" for name, chosen in rows.items()),
        *(f"left out: {name} ({why})" for name, why in model.left_out.items()),
        *(
            f"{name}: {count:,} values are categories that no training row has"
            for name, count in unknown.items()
        ),
    )
    if missing := len(table) - len(known):
        record.say(f"left out: {missing:,} rows without {s.target}")
    record.say(f"{s.device}, {s.workers} threads, XGBoost {xgboost.__version__}")
    if trees.rounds:
        record.say(f"resumed after round {trees.rounds} of at most {s.rounds}")

    def is_over() -> bool:
        return trees.rounds >= s.rounds or (
            trees.rounds - 1 - trees.best_round >= s.early_stopping_rounds
        )

    while not is_over() and not stop.is_wanted:
        losses = trees.grow(train, validation)
        if trees.rounds % s.report_every == 0 or is_over():
            line = {"loss": losses[0], "held_out_loss": losses[1]}
            record.add({"step": trees.rounds, "steps": s.rounds, **line})
        if trees.rounds % s.checkpoint_rounds == 0 and not is_over():
            kept = boosting.save(checkpoint, trees)
            trees = boosting.Trees.begun(told, s.seed, kept, train, validation)
    if not is_over():
        record.say(f"stopped in round {trees.rounds + 1}: run again to resume from the checkpoint")
        return

    # What is kept is the best of it, and looks at the test part once.
    best = trees.best()
    boosting.write(results / "model", best, model)
    found, without = {}, {}
    for name, (values, right) in part.items():
        found[name] = scores(right, boosting.predictions(best.booster, values, len(classes)))
        plain = baseline(part["train"][1], len(classes), len(right))
        without[name] = scores(right, plain)
    summary = {
        "settings": asked,
        "device": s.device,
        "classes": classes,
        "rows": {name: len(chosen) for name, chosen in rows.items()},
        "left_out": dict(model.left_out),
        "unknown": unknown,
        "rounds": trees.rounds,
        "best_round": best.rounds,
        "scores": found,
        "baseline": without,
        "gain": importance.gain(best.booster, model),
        "permutation": importance.permutation(best.booster, model, *part["validation"], s.seed),
        "xgboost": xgboost.__version__,
    }
    record.summarize(summary)
    record.say(f"best after round {best.rounds} of {trees.rounds}")
    for figure, value in found["test"].items():
        record.say(
            f"test {figure} {_said(value)}, without a model {_said(without['test'][figure])}"
        )


def _said(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


if __name__ == "__main__":
    run(main, settings(), TabularDataError, ResumeError)
