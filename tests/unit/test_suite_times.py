import json
from pathlib import Path

import pytest

from benchmarks import suite_times

REPORT = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="3" time="4.21">
<testcase classname="tests.browser.options.test_form" name="test_a" time="2.26"/>
<testcase classname="tests.integration.session.test_idle" name="test_b[x]" time="3.5"/>
<testcase classname="tests.integration.hub.test_survival" name="test_c" time="0.75"/>
</testsuite></testsuites>"""


def test_the_slowest_tests_are_named() -> None:
    assert suite_times.slowest_tests(REPORT, 2) == [
        (3.5, "tests.integration.session.test_idle::test_b[x]"),
        (2.3, "tests.browser.options.test_form::test_a"),
    ]


def test_no_report_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite_times.main(["--reports", str(tmp_path)]) == 1
    capsys.readouterr()
    (tmp_path / "here.xml").write_bytes(REPORT)
    assert suite_times.main(["--reports", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("4.2 here, 3 tests")
    run = json.loads(said[-1])["runs"]["here"]
    assert (run["tests"], run["seconds"]) == (3, 4.2)
    assert run["folders"] == {"tests/integration": 4.2, "tests/browser": 2.3}
    assert len(run["slowest"]) == 3
