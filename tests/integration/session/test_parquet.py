"""Rows of Parquet files, as the session's server gives them to JupyterLab."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

MAKE = """
import decimal, os
import pyarrow as pa
from pyarrow import parquet
NOW = 1_700_000_000_123_456_789
os.makedirs("tables", exist_ok=True)
table = pa.table({
    "step": list(range(1000)),
    "loss": [None if step % 7 == 0 else step / 4 for step in range(1000)],
    "when": pa.array(range(NOW, NOW + 1000), pa.timestamp("ns")),
    "text": ["x" * 400 if step == 1 else f"<b>{step}</b>" for step in range(1000)],
    "raw": [b"abc"] * 1000,
    "list": [[1, step] for step in range(1000)],
    "a.b": [{"c": None}] * 1000,
    "price": [decimal.Decimal("1.50")] * 1000,
    "kind": pa.array(["odd", "even"] * 500).dictionary_encode(),
})
parquet.write_table(table, "tables/small groups.parquet", row_group_size=300)
parquet.write_table(pa.table({f"c{number}": [1] for number in range(250)}), "tables/wide.parquet")
parquet.write_table(pa.table({"none": pa.array([], pa.int32())}), "tables/empty.parquet")
latin_1 = pa.Array.from_buffers(pa.string(), 2, pa.array([b"caf\\xe9", b"tea"]).buffers())
odd = {
    "latin 1": latin_1,
    "in a list": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), latin_1),
    "nanoseconds": pa.array([[1], None], pa.list_(pa.timestamp("ns"))),
}
parquet.write_table(pa.table(odd), "tables/odd.parquet")
# A few hundred bytes that are 4 GB.
long = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 4_000_000]))
parquet.write_table(
    pa.table({"long": long}), "tables/bomb.parquet", compression="zstd", store_schema=False
)
assert os.path.getsize("tables/bomb.parquet") < 10_000
open("tables/text.parquet", "w").write("this is no Parquet file")
if not os.path.islink("tables/link.parquet"):
    os.symlink("wide.parquet", "tables/link.parquet")
"""


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[2]) as visitor:
        assert visitor.run(MAKE) == ""
        yield visitor
        visitor.run("import shutil; shutil.rmtree('tables')")


def rows(user: Visitor, name: str, first: int = 0) -> dict[str, Any]:
    answer = user.session("GET", f"/portal/parquet/tables/{name}?first={first}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_values_of_all_kinds_are_texts(user: Visitor) -> None:
    found = rows(user, "small groups.parquet")
    assert found["columns"][2] == {"name": "when", "type": "timestamp[ns]"}
    assert (found["all_columns"], found["all_rows"]) == (9, 1000)
    nothing, long, third = found["rows"][:3]
    assert nothing[1] is None
    assert len(long[3]) == 301
    assert third == [
        *("2", "0.5", "2023-11-14 22:13:20.123456791", "<b>2</b>", "3 bytes", "[1, 2]"),
        *('{"c": null}', "1.50", "odd"),
    ]


def test_values_that_python_has_not_hide_no_others(user: Visitor) -> None:
    first, second = rows(user, "odd.parquet")["rows"]
    assert first[0] == "caf\N{REPLACEMENT CHARACTER}"
    assert "caf" in first[1]
    assert "1970-01-01 00:00:00.000000001" in first[2]
    assert second == ["tea", '["tea"]', None]


@pytest.mark.parametrize(
    ("first", "count"), [(0, 200), (290, 200), (600, 200), (950, 50), (1000, 0)]
)
def test_rows_are_read_across_the_files_groups(user: Visitor, first: int, count: int) -> None:
    found = rows(user, "small groups.parquet", first)
    assert found["first"] == first
    assert [row[0] for row in found["rows"]] == [f"{first + number}" for number in range(count)]


def test_of_many_columns_the_first_are_shown(user: Visitor) -> None:
    for name in ("wide.parquet", "link.parquet"):
        found = rows(user, name)
        assert (len(found["columns"]), found["all_columns"]) == (200, 250)
        assert found["rows"] == [["1"] * 200]
    assert rows(user, "empty.parquet")["rows"] == []


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("tables/text.parquet", 422, "text.parquet cannot be shown as a table"),
        ("tables/none.parquet", 404, "There is no file none.parquet"),
        ("tables", 404, "There is no file tables"),
        ("%2E%2E%2F%2E%2E%2F%2E%2E%2Fetc%2Fpasswd", 404, "outside root contents directory"),
        ("tables/wide.parquet?first=-1", 400, "number of a row"),
        ("tables/wide.parquet?first=1e3", 400, "number of a row"),
    ],
)
def test_what_cannot_be_shown_is_said(user: Visitor, path: str, status: int, words: str) -> None:
    answer = user.session("GET", f"/portal/parquet/{path}")
    assert answer.status_code == status
    assert words in answer.text
    assert "Traceback" not in answer.text


def test_a_file_that_fills_the_memory_ends_nothing_but_its_reader(user: Visitor) -> None:
    kernel_id = user.open_kernel()
    try:
        user.run_in(kernel_id, "kept = 7")
        answer = user.session("GET", "/portal/parquet/tables/bomb.parquet")
        assert answer.status_code == 422, answer.text
        assert "bomb.parquet cannot be shown as a table" in answer.json()["message"]
        assert user.run_in(kernel_id, "print(kept)") == "7\n"
    finally:
        user.session("DELETE", f"/api/kernels/{kernel_id}").raise_for_status()
