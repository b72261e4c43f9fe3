"""What is said of tests that failed."""

import subprocess
import sys
from pathlib import Path

import pytest
from failures import (
    SHOWN,
    failures,
    failures_in,
    has_passed,
    run_times,
    seconds_of_files,
    times_in,
)

TESTS = """
import pytest

@pytest.fixture
def broken():
    raise OSError("the disk is gone")

def test_well():
    pass

def test_wrong():
    assert 1 + 1 == 3, "arithmetic"

def test_early(broken):
    pass
"""


@pytest.fixture
def report(tmp_path: Path) -> bytes:
    """Return what pytest reports of three tests, of which one passes."""
    (tmp_path / "test_it.py").write_text(TESTS)
    argv = [sys.executable, "-m", "pytest", "-q", "--junitxml=report.xml", "-p", "no:cacheprovider"]
    ran = subprocess.run([*argv, "-c", "/dev/null", "."], cwd=tmp_path, capture_output=True)
    assert ran.returncode == 1, ran.stdout.decode()
    return (tmp_path / "report.xml").read_bytes()


def test_each_failure_is_named_with_the_end_of_its_words(report: bytes) -> None:
    wrong, early = failures(report)
    assert wrong.startswith("FAILURE test_it::test_wrong (0 s)\n")
    assert "AssertionError: arithmetic" in wrong
    assert early.startswith("ERROR test_it::test_early")
    assert "OSError: the disk is gone" in early
    assert all(len(words.splitlines()) <= 1 + SHOWN for words in (wrong, early))


def test_a_report_that_was_not_finished_is_no_report(report: bytes) -> None:
    with pytest.raises(ValueError, match="not a whole report"):
        failures(report[: len(report) // 2])


def test_the_seconds_of_files_are_those_of_their_tests_also_of_the_ones_in_classes(
    tmp_path: Path,
) -> None:
    report = tmp_path / "report.xml"
    assert seconds_of_files(report) == {}
    report.write_text("""<testsuites><testsuite>
        <testcase classname="tests.browser.options.test_form" name="test_a" time="1.5"/>
        <testcase classname="tests.browser.options.test_form.TestLate" name="test_b[x]" time="2"/>
        <testcase classname="tests.notebooks.data.test_data" name="test_c" time="0.25"/>
    </testsuite></testsuites>""")
    seconds = {"tests/browser/options/test_form.py": 3.5, "tests/notebooks/data/test_data.py": 0.25}
    assert seconds_of_files(report) == seconds
    report.write_bytes(report.read_bytes()[:80])
    assert seconds_of_files(report) == {}


RUN = b"""<testsuites><testsuite name="pytest" tests="3" time="4.21">
    <testcase classname="tests.browser.options.test_form" name="test_a" time="2.26"/>
    <testcase classname="tests.integration.session.test_idle" name="test_b[x]" time="3.5"/>
    <testcase classname="tests.integration.hub.test_survival" name="test_c" time="0.75"/>
</testsuite></testsuites>"""


def test_a_run_has_its_seconds_and_each_folder_its_tests() -> None:
    run = run_times(RUN)
    assert (run.tests, run.seconds) == (3, 4.2)
    assert list(run.folders.items()) == [("tests/integration", 4.2), ("tests/browser", 2.3)]


def test_the_table_has_a_line_for_each_run_whole_or_not(tmp_path: Path) -> None:
    report = tmp_path / "here.xml"
    report.write_bytes(RUN)
    words = "    4 s: here, 3 tests: tests/integration 4 s, tests/browser 2 s"
    assert times_in(report) == words
    report.write_bytes(RUN[:80])
    assert times_in(report).startswith("    ? s: here: not a whole report")


def test_a_run_without_a_report_is_a_failure(tmp_path: Path) -> None:
    (found,) = failures_in(tmp_path / "site.xml")
    assert found.startswith("ERROR site: ")


@pytest.mark.parametrize(
    ("package", "expected"),
    [("tests.browser", True), ("tests.notebooks", False), ("tests.note", False)],
)
def test_a_package_has_passed_where_others_have_failed(package: str, expected: bool) -> None:
    cases = '<testcase classname="tests.browser.test_a" name="b"/>'
    cases += '<testcase classname="tests.notebooks.test_c" name="d"><error/></testcase>'
    report = f"<testsuites><testsuite>{cases}</testsuite></testsuites>"
    assert has_passed(report.encode(), package) is expected
