"""Boosted trees on a table: they learn, resume to the last bit, and refuse other columns."""

import csv
import gzip
import json
import os
import random
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.running import SPARING, assert_drawn_live, printed_by
from tests.waiting import until

TABLES = ROOT / "notebook_templates" / "tables"
IMPORTED = ("pandas", "xgboost", "sklearn.metrics")
LONG = {
    "rounds": 600,
    "early-stopping-rounds": 600,
    "learning-rate": 0.01,
    "max-depth": 4,
    "checkpoint-rounds": 40,
}
TARGETS = """
import sys
sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/../distributed"]
import numpy as np, pandas as pd, boosting, columns
tables = {
    "texts": ["yes", "no", None], "booleans": [True, False], "few": [10, 2, 3],
    "gaps": [0.0, 1.0, None], "many": range(30), "fractions": [0.5, 1.5],
}
tried = [(name, "auto") for name in tables]
tried += [("fractions", "classification"), ("few", "regression")]
words = {"auto": "", "classification": " as classes", "regression": " as numbers"}
for name, task in tried:
    table = pd.DataFrame({"t": list(tables[name])})
    print(name + words[task], columns.classes_of(table, "t", task))
labels = np.array([0, 1] * 5)
parts = columns.parts(labels, 2, 0.2, 0.2, 1)
of_first = [int((labels[rows] == 0).sum()) for rows in parts.values()]
every = sorted(np.concatenate(list(parts.values()))) == list(range(10))
print("parts", *(len(rows) for rows in parts.values()), of_first, every)
few = pd.DataFrame({"t": [1.0, 2.0] * 4, "n": range(8), "note": pd.array([None] * 8, object)})
print("left out", columns.learned_from(few, "t", (), (), ()).left_out)
print("threads", boosting.threads_of_job({"SLURM_CPUS_PER_TASK": "1"}))
"""
LOAD = """
import sys, xgboost
model = xgboost.Booster(model_file=sys.argv[1])
print(model.num_boosted_rounds(), model.num_features(), *model.feature_types)
"""


def argv(python: Path, program: str, **options: object) -> list[str]:
    words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
    return [str(python), "-B", str(TABLES / program), *words]


def done(whole: list[str], **variables: str) -> str:
    ended = subprocess.run(
        whole,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, **SPARING, "CUDA_VISIBLE_DEVICES": "", **variables},
    )
    return ended.stdout + ended.stderr


def train(python: Path, results: Path, **options: object) -> str:
    given = {"results": results, "workers": 1, "device": "cpu", **options}
    return done(argv(python, "train_trees.py", **given))


def predict(python: Path, run: Path, table: Path) -> str:
    output = table.with_name("predictions.csv")
    given = {"model": run / "model", "table": table, "output": output}
    return done(argv(python, "predict_table.py", **given))


def model_of(results: Path) -> bytes:
    return (results / "model/model.ubj").read_bytes()


def summary_of(results: Path) -> dict[str, Any]:
    return dict(json.loads((results / "summary.json").read_text()))


def lines_of(results: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (results / "progress.jsonl").read_text().splitlines()]
    return [{k: line[k] for k in line if k not in {"time", "elapsed_seconds"}} for line in lines]


def written(file: Path, rows: list[dict[str, object]]) -> Path:
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def houses(rows: int) -> list[dict[str, object]]:
    """Houses whose price follows from three columns; the postcodes are numbers without order."""
    draw = random.Random(1)  # noqa: S311  # a table, not a secret
    dear = {"00100", "00300", "00500"}
    found: list[dict[str, object]] = []
    for number in range(rows):
        code = draw.choice(["00100", "00200", "00300", "00400", "00500", "00600"])
        size, garden = draw.uniform(40, 200), draw.choice(["yes", "no", ""])
        price = 1000 * size * (2 if code in dear else 1) + 20_000 * (garden == "yes")
        size_known = round(size, 1) if draw.random() > 0.05 else ""
        found.append(
            {"id": number, "size": size_known, "postcode": code, "garden": garden, "price": price}
        )
    return found


def test_the_notebook_learns_shows_and_predicts(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    python = python_of("pytorch")
    more = {"workers": 1, "checkpoint_rounds": 20}
    printed = printed_by(TABLES / "tables.ipynb", python, tmp_path, {"more": more})
    run = tmp_path / "logs/tables/trees-here"
    summary = summary_of(run)
    scores, without = summary["scores"]["test"], summary["baseline"]["test"]
    assert scores["auc"] > 0.75
    assert without["auc"] == 0.5
    assert scores["log_loss"] < without["log_loss"] - 0.08
    assert scores["accuracy"] > without["accuracy"] + 0.05
    assert f"test auc {scores['auc']:.4f}, without a model 0.5000" in printed
    assert summary["best_round"] < summary["rounds"] < 2000
    # What decides is found to matter, what does not is not.
    for kind in ("gain", "permutation"):
        ranked = sorted(summary[kind], key=summary[kind].get)
        assert ranked[-1] == "months", kind
    assert abs(summary["permutation"]["paperless"]) < 0.005 < summary["permutation"]["contract"]
    assert list((run / "tensorboard").glob("events.*"))
    assert "200 predictions in" in printed
    rows = list(csv.DictReader((run / "predictions.csv").read_text().splitlines()))
    assert [row["customer"] for row in rows[:2]] == ["C000000", "C000001"]
    assert {row["prediction"] for row in rows} == {"yes", "no"}
    cells = json.loads((tmp_path / "done.ipynb").read_text())["cells"]
    kinds = [kind for c in cells for one in c.get("outputs", []) for kind in one.get("data", {})]
    assert kinds.count("image/png") == 2
    assert kinds.count("text/html") == 4
    assert_drawn_live(tmp_path)

    # Another setting is another run, beside the first.
    printed = printed_by(
        TABLES / "tables.ipynb",
        python,
        _beside(tmp_path),
        {"more": more, "max_depth": 2, "runs_dir": str(run.parent)},
    )
    assert f"Folder {run}-2" in printed
    assert "max_depth" in (tmp_path / "beside/done.ipynb").read_text().rpartition("earlier = ")[2]


def test_runs_for_classes_and_for_numbers_are_compared_with_all_their_scores(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    runs = {"classes": {"auc": 0.75, "accuracy": 0.5}, "numbers": {"rmse": 12.5}}
    for name, scores in runs.items():
        (tmp_path / name).mkdir()
        summary = {"settings": {"target": name}, "scores": {"validation": scores, "test": scores}}
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    cells = json.loads((TABLES / "tables.ipynb").read_text())["cells"]
    (cell,) = (text for one in cells if (text := "".join(one["source"])).startswith("earlier = "))
    begin = "import json, pandas as pd; from pathlib import Path; base = Path('.')\n"
    begin += "display = lambda table: print(table.to_json(orient='index'))\n"
    said = subprocess.run(
        [str(python_of("pytorch")), "-c", begin + cell],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    for name, row in json.loads(said.stdout).items():
        known = {figure: value for figure, value in row.items() if isinstance(value, float)}
        parts = ("validation", "test")
        assert known == {f"{part} {one}": runs[name][one] for part in parts for one in runs[name]}


def _beside(home: Path) -> Path:
    other = home / "beside"
    other.mkdir()
    return other


@pytest.fixture(scope="module")
def whole(preloaded: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long run that nothing interrupted."""
    run = tmp_path_factory.mktemp("trees") / "whole"
    train(preloaded("pytorch", *IMPORTED), run, **LONG)
    return run


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGKILL])
def test_a_run_that_was_interrupted_gives_the_same_model_to_the_last_bit(
    whole: Path, preloaded: Callable[..., Path], tmp_path: Path, number: signal.Signals
) -> None:
    python, broken = preloaded("pytorch", *IMPORTED), tmp_path / "broken"
    given = {"results": broken, "workers": 1, "device": "cpu", **LONG}
    begun = subprocess.Popen(
        argv(python, "train_trees.py", **given), stdout=subprocess.PIPE, text=True
    )
    checkpoint = broken / "checkpoint.ubj"
    until(checkpoint.exists, seconds=120, every=0.02, what="there is a checkpoint")
    begun.send_signal(number)
    said, _ = begun.communicate(timeout=60)
    assert not (broken / "summary.json").exists()
    assert ("run again to resume" in said) is (number == signal.SIGUSR1)
    assert re.search(r"resumed after round \d+0 of at most 600", train(python, broken, **LONG))
    assert summary_of(whole)["best_round"] > 200
    assert model_of(broken) == model_of(whole)
    assert checkpoint.read_bytes() == (whole / "checkpoint.ubj").read_bytes()
    assert lines_of(broken) == lines_of(whole)
    assert [line["step"] for line in lines_of(broken)] == list(range(5, 601, 5))
    assert summary_of(broken)["scores"] == summary_of(whole)["scores"]


def test_more_rounds_continue_a_run_and_another_seed_is_another_model(
    preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    python, few = (
        preloaded("pytorch", *IMPORTED),
        {"checkpoint-rounds": 10, "early-stopping-rounds": 100},
    )
    train(python, tmp_path / "once", rounds=35, **few)
    train(python, tmp_path / "twice", rounds=25, **few)
    said = train(python, tmp_path / "twice", rounds=35, **few)
    assert "resumed after round 20 of at most 35" in said
    assert model_of(tmp_path / "twice") == model_of(tmp_path / "once")
    train(python, tmp_path / "other", rounds=35, **few, seed=2)
    assert model_of(tmp_path / "other") != model_of(tmp_path / "once")


def test_a_number_is_predicted_from_a_table_of_ones_own(
    preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    python, run = preloaded("pytorch", *IMPORTED), tmp_path / "run"
    table = written(tmp_path / "houses.csv", houses(900))
    given = {"table": table, "target": "price", "ignore": '["id"]', "rounds": 300}
    as_categories = {**given, "categorical": '["postcode"]'}
    said = train(python, run, **as_categories)
    assert "a number (price) from 3 columns, 2 of them categories" in said
    assert "left out: id (ignored)" in said
    scores, without = summary_of(run)["scores"]["test"], summary_of(run)["baseline"]["test"]
    assert set(scores) == {"rmse", "mae", "r2"}
    assert scores["rmse"] < 0.4 * without["rmse"]
    assert scores["mae"] < 0.4 * without["mae"]
    assert scores["r2"] > 0.85 > 0.01 > without["r2"]
    # What says nothing without its categories is worth much with them; zeros in front stay.
    columns = json.loads((run / "model/columns.json").read_text())
    assert columns["categories"]["postcode"] == [f"00{number}00" for number in range(1, 7)]
    assert columns["categories"]["garden"] == ["no", "yes"]

    # XGBoost alone reads the model; a table with the target shows how good it is.
    model = str(run / "model/model.ubj")
    best = summary_of(run)["best_round"]
    assert done([str(python), "-c", LOAD, model]).split() == [str(best), "3", "float", "c", "c"]
    said = predict(python, run, written(tmp_path / "new.csv", houses(200)))
    assert "200 predictions in" in said
    found = re.search(r"r2 (0\.\d+)", said)
    assert found
    assert float(found[1]) > 0.85


def test_more_than_two_classes_are_told_apart(
    preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    python, run = preloaded("pytorch", *IMPORTED), tmp_path / "run"
    rows = houses(600)
    for row in rows:
        row["kind"] = _kind(float(str(row.pop("price"))))
    table = written(tmp_path / "kinds.csv", rows)
    said = train(python, run, table=table, target="kind", ignore='["id"]', rounds=60)
    assert "3 classes (kind) from 3 columns" in said
    scores, without = summary_of(run)["scores"]["test"], summary_of(run)["baseline"]["test"]
    assert scores["auc"] > 0.9 > without["auc"] == 0.5
    assert scores["accuracy"] > without["accuracy"] + 0.2
    predict(python, run, table)
    predicted = list(csv.DictReader((tmp_path / "predictions.csv").read_text().splitlines()))
    right = [one["prediction"] == row["kind"] for one, row in zip(predicted, rows, strict=True)]
    assert sum(right) > 0.85 * len(rows)
    shares = [float(predicted[0][f"probability {kind}"]) for kind in ("cheap", "dear", "fair")]
    assert sum(shares) == pytest.approx(1, abs=1e-5)


def _kind(price: float) -> str:
    return "cheap" if price < 100_000 else "fair" if price < 200_000 else "dear"


def test_a_table_with_other_columns_is_refused_by_name(
    preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    python, run = preloaded("pytorch", *IMPORTED), tmp_path / "run"
    rows = houses(300)
    table = written(tmp_path / "houses.csv", rows)
    given = {"table": table, "target": "price", "ignore": '["id"]', "rounds": 5}
    train(python, run, **given, categorical='["postcode"]')
    plain = [{key: row[key] for key in ("size", "postcode", "garden")} for row in rows[:20]]
    renamed = [{"area": row["size"], **{k: row[k] for k in row if k != "size"}} for row in plain]
    texts = [{**row, "size": "large"} for row in plain[:3]] + plain[3:]
    strange = [{**row, "postcode": "09999"} for row in plain[:7]] + plain[7:]
    said = predict(python, run, written(tmp_path / "renamed.csv", renamed))
    assert "the table has no column 'size' and has 'area', which the model does not know" in said
    assert "Traceback" not in said
    assert not (tmp_path / "predictions.csv").exists()
    said = predict(python, run, written(tmp_path / "texts.csv", texts))
    assert "'size' is a column of numbers; 3 values are not, such as 'large'" in said
    assert "Traceback" not in said
    said = predict(python, run, written(tmp_path / "strange.csv", strange))
    assert "postcode: 7 values are unknown categories" in said
    assert "20 predictions in" in said


def test_a_table_in_parquet_teaches_what_it_does_in_csv(
    preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    python = preloaded("pytorch", *IMPORTED)
    csv, parquet = written(tmp_path / "houses.csv", houses(200)), tmp_path / "houses.parquet"
    same = "import sys, pandas; pandas.read_csv(sys.argv[1]).to_parquet(sys.argv[2])"
    done([str(python), "-B", "-c", same, str(csv), str(parquet)])
    for table in (csv, parquet):
        train(python, tmp_path / table.suffix, table=table, target="price", rounds=8)
    assert model_of(tmp_path / ".parquet") == model_of(tmp_path / ".csv")


def test_other_settings_and_another_table_are_refused_by_name(
    preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    python, run = preloaded("pytorch", *IMPORTED), tmp_path / "run"
    table = written(tmp_path / "houses.csv", houses(200))
    given = {"table": table, "target": "price", "rounds": 8, "checkpoint-rounds": 5}
    train(python, run, **given)
    before = model_of(run)
    said = train(python, run, **given, max_depth=3)
    assert "holds a training with max_depth = 6, not 3" in said
    written(table, houses(201))
    said += train(python, run, **given)
    assert "holds a training with table_sha256 = " in said
    assert "Traceback" not in said
    assert model_of(run) == before


def test_what_cannot_be_learned_is_said_in_words(
    preloaded: Callable[..., Path], tmp_path: Path
) -> None:
    python = preloaded("pytorch", *IMPORTED)
    table = written(tmp_path / "houses.csv", houses(50))
    alike = written(tmp_path / "alike.csv", [{"a": number, "b": "x"} for number in range(9)])
    (tmp_path / "some.parquet").write_bytes(b"PAR1")
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(table.read_bytes())[:-20])
    cases: list[tuple[dict[str, object], str]] = [
        ({"table": tmp_path / "gone.csv"}, "gone.csv: there is no such file"),
        ({"table": tmp_path / "some.parquet"}, "some.parquet: "),
        ({"table": cut}, "cut.csv.gz: Compressed file ended"),
        ({"table": table, "target": "prize"}, "target is 'prize'; the table has 'id', 'size'"),
        ({"table": table, "target": "price", "ignore": '["no"]'}, "'no' is not a column beside"),
        ({"table": alike, "target": "b"}, "'b' has 1 different values"),
        ({"table": table, "target": "price", "test": 0.9}, "both are shares, together < 1"),
        ({"table": table, "target": "price", "device": "cuda"}, "this process sees no GPU"),
    ]
    for number, (options, wanted) in enumerate(cases):
        said = train(python, tmp_path / str(number), **options)
        assert wanted in said, said
        assert "Traceback" not in said


@pytest.mark.parametrize("words", [("true", "false"), ("TRUE", "FALSE"), ("True", "False")])
def test_a_column_of_truths_counts_however_it_is_written(
    preloaded: Callable[..., Path], tmp_path: Path, words: tuple[str, str]
) -> None:
    python, (yes, no) = preloaded("pytorch", *IMPORTED), words
    rows: list[dict[str, object]] = [
        {"vip": yes if number % 3 else no, "kind": "a" if number % 3 else "b", "n": number % 7}
        for number in range(120)
    ]
    table = written(tmp_path / "people.csv", rows)
    train(python, tmp_path / "run", table=table, target="kind", rounds=20)
    said = predict(python, tmp_path / "run", table)
    assert "unknown categories" not in said, said
    with table.with_name("predictions.csv").open(newline="") as stream:
        found = [line["prediction"] for line in csv.DictReader(stream)]
    assert found == [row["kind"] for row in rows]


def test_the_target_says_what_is_learned(preloaded: Callable[..., Path], tmp_path: Path) -> None:
    answers = done(
        [str(preloaded("pytorch", *IMPORTED)), "-B", "-c", TARGETS, str(TABLES)]
    ).splitlines()
    assert answers == [
        "texts ('no', 'yes')",
        "booleans ('False', 'True')",
        "few ('2', '3', '10')",
        "gaps ('0', '1')",
        "many ()",
        "fractions ()",
        "fractions as classes ('0.5', '1.5')",
        "few as numbers ()",
        # Of each class 3 in 5, 1, 1; nothing twice.
        "parts 6 2 2 [3, 1, 1] True",
        "left out {'note': 'no value in the rows to train on'}",
        "threads 1",
    ]
