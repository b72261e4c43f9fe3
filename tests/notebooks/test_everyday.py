"""What everybody expects of a notebook, in the kernel of each framework."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# MXNet's numpy is too old for Arrow.
FRAMEWORKS = ("pytorch", "tensorflow", "jax")
PROGRAM = """
import sys
from pathlib import Path
import ipywidgets, matplotlib, numpy, pandas, papermill, sklearn, tqdm
folder = Path(sys.argv[1])
table = pandas.DataFrame({
    "count": numpy.arange(1000),
    "share": numpy.linspace(0, 1, 1000),
    "word": [f"w{one % 7}" for one in range(1000)],
    "when": pandas.date_range("2026-01-01", periods=1000, freq="h"),
})
table.to_parquet(folder / "table.parquet")
table.to_csv(folder / "table.csv", index=False)
whole = pandas.read_parquet(folder / "table.parquet")
pandas.testing.assert_frame_equal(whole, table)
assert list(pandas.read_parquet(folder / "table.parquet", columns=["word"])) == ["word"]
assert list(pandas.read_csv(folder / "table.csv").word) == list(table.word)
print(len(whole))
"""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_tables_are_written_and_read(
    framework: str, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of(framework)), "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "1000\n"), done.stderr
