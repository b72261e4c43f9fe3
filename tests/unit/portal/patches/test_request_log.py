"""What the hub writes down about requests."""

from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import _xsrf_utils
from tornado.log import app_log

from dsportal.hub.patches import request_log


def handler(status: int, *, is_known: bool, address: str = "/hub/home", method: str = "GET") -> Any:
    return SimpleNamespace(
        get_status=lambda: status,
        current_user=SimpleNamespace(name="ada") if is_known else None,
        request=SimpleNamespace(uri=address, method=method),
    )


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the addresses that are written down."""
    found: list[str] = []
    monkeypatch.setattr(request_log, "log_request", lambda asked: found.append(asked.request.uri))
    monkeypatch.setattr(request_log, "prometheus_log_method", lambda asked: None)
    return found


@pytest.mark.parametrize(
    ("status", "is_known", "is_written"),
    [
        (200, True, True),
        (404, True, True),
        (200, False, False),
        (404, False, False),
        (500, False, True),
    ],
)
def test_strangers_leave_no_line_but_for_a_fault_of_the_hubs(
    lines: list[str], status: int, is_known: bool, is_written: bool
) -> None:
    request_log.log_known(handler(status, is_known=is_known))
    assert bool(lines) is is_written


def test_an_address_is_cut(lines: list[str]) -> None:
    request_log.log_known(handler(200, is_known=True, address="/hub/" + "x" * 5000))
    (line,) = lines
    assert len(line) <= request_log.LONGEST_ADDRESS


def test_no_stranger_invents_labels_of_the_metrics(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(
        request_log, "prometheus_log_method", lambda asked: counted.append(asked.request.method)
    )
    for method in ("GET", "DELETE", "AAAA1", "get"):
        request_log.log_known(handler(405, is_known=False, method=method))
    assert counted == ["GET", "DELETE", "OTHER", "OTHER"]


def test_a_request_that_only_reads_leaves_no_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request = SimpleNamespace(headers={}, method="GET", path="/hub/home")
    reading: Any = SimpleNamespace(request=request)
    monkeypatch.setattr(app_log, "propagate", True)
    # A test that reads the hub's settings installs it.
    monkeypatch.setattr(app_log, "filters", [])
    assert _xsrf_utils._needs_check_xsrf(reading) is False
    assert "Skipping XSRF check" in caplog.text
    caplog.clear()
    app_log.addFilter(request_log._is_worth_a_line)
    try:
        assert _xsrf_utils._needs_check_xsrf(reading) is False
        app_log.warning("of something else")
    finally:
        app_log.removeFilter(request_log._is_worth_a_line)
    assert caplog.messages == ["of something else"]
