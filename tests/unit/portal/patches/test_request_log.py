"""What the hub writes down about requests."""

import ast
import importlib
import inspect
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import _xsrf_utils
from jupyterhub.app import JupyterHub
from jupyterhub.handlers import BaseHandler
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


def line(module: str, function: str, words: str, *values: object) -> logging.LogRecord:
    path = f"/hub/{module}.py"
    return logging.LogRecord("hub", logging.WARNING, path, 1, words, values, None, function)


def test_complaints_of_strangers_are_short_and_one_a_second() -> None:
    now = 100.0
    lines = request_log.LineLimiter(lambda: now)

    def said() -> list[bool]:
        records = [
            line("base", "_validate_next_url", "Disallowing %r", "x" * 16000),
            line("login", "check_xsrf_cookie", "XSRF error on login form"),
        ]
        found = [lines.filter(record) for record in records]
        assert len(records[0].getMessage()) <= request_log.LONGEST_ADDRESS or not found[0]
        return found

    assert (said(), said()) == ([True, False], [False, False])
    now = 101.0
    assert said() == [True, False]


def test_what_is_said_of_users_is_always_written_and_cut() -> None:
    lines = request_log.LineLimiter(lambda: 0.0)
    for _ in range(3):
        record = line("base", "post", "Content security violation: %s", "Z" * 10**6)
        assert lines.filter(record)
        assert len(record.getMessage()) <= request_log.LONGEST_LINE


def test_a_line_whose_arguments_do_not_fit_breaks_nothing() -> None:
    record = line("base", "post", "%d of %d", "one")
    assert request_log.LineLimiter(lambda: 0.0).filter(record)
    assert record.getMessage() == "%d of %d (/hub/base.py:1: TypeError)"


@pytest.mark.parametrize(("module", "function"), sorted(request_log._OF_STRANGERS))
def test_the_places_are_there(module: str, function: str) -> None:
    (home,) = [
        name
        for name in (
            "jupyterhub.handlers.base",
            "jupyterhub.handlers.login",
            "jupyterhub.oauth.provider",
            "jupyterhub._xsrf_utils",
            "tornado.http1connection",
            "tornado.web",
        )
        if name.endswith(f".{module}")
    ]
    tree = ast.parse(inspect.getsource(importlib.import_module(home)))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert function in {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_the_hubs_handlers_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseHandler, "log_exception", BaseHandler.log_exception)
    monkeypatch.setattr(JupyterHub, "init_logging", JupyterHub.init_logging)
    monkeypatch.setattr(request_log, "_init_logging", lambda hub: None)
    monkeypatch.setattr(app_log, "filters", [])
    request_log.install()
    handler = logging.NullHandler()
    hub: Any = SimpleNamespace(log=SimpleNamespace(handlers=[handler]))
    JupyterHub.init_logging(hub)
    assert [type(one) for one in handler.filters] == [request_log.LineLimiter]
