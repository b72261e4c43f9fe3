"""What a page's request may call a file, a folder or a kernel."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.utils import ensure_async
from tornado.web import HTTPError

from dsportal.session.files.contents import SessionContents
from dsportal.session.files.working_folders import PlacedKernels
from dsportal.session.page.template_copies import copy_from
from dsportal.session.page.templates import Catalogue
from dsportal.session.upstream.jupyter_server import mend

WRONG: list[Any] = [1, True, 1.5, [], {}, ["a"], "\ud800", "\0", "a" * 300, "a/" * 3000]


def refused(asked: Any) -> int:
    async def run() -> None:
        await ensure_async(asked())

    with pytest.raises(HTTPError) as raised:
        asyncio.run(run())
    return raised.value.status_code


@pytest.mark.parametrize("key", ["path", "kernel_id", "kernel_name"])
def test_a_kernel_is_not_begun_by_a_wrong_name(key: str) -> None:
    kernels: Any = PlacedKernels()  # type: ignore[no-untyped-call]
    for value in WRONG:
        assert refused(lambda value=value: kernels.start_kernel(**{key: value})) == 400


@pytest.mark.parametrize("key", ["path", "name", "type", "format", "ext"])
def test_a_file_has_no_wrong_name_and_kind(tmp_path: Path, key: str) -> None:
    files: Any = SessionContents(root_dir=str(tmp_path))
    for value in WRONG:
        model = {"type": "file", "format": "text", "content": "x"} | {key: value}
        assert refused(lambda model=model: files.save(model, "a.txt")) == 400
        assert refused(lambda model=model: files.new(model, "a.txt")) == 400
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("key", "value"), [("content", 1), ("content", []), ("chunk", "1")])
def test_a_files_content_is_a_text_or_a_notebook(tmp_path: Path, key: str, value: Any) -> None:
    files: Any = SessionContents(root_dir=str(tmp_path))
    assert refused(lambda: files.update({"path": None}, "a.txt")) == 400
    model = {"type": "file", "format": "text", "content": "x"} | {key: value}
    assert refused(lambda: files.save(model, "a.txt")) == 400


def test_what_is_copied_has_a_name(tmp_path: Path) -> None:
    files: Any = SessionContents(root_dir=str(tmp_path))
    for value in WRONG:
        assert refused(lambda value=value: files.copy(value, "a")) == 400


def test_a_template_has_a_name_that_a_file_can_have(tmp_path: Path) -> None:
    for path in ("\\ud800", "a" * 300):
        with pytest.raises(ValueError, match="not a path below the home"):
            copy_from(b'{"path": "%s", "folder": ""}' % path.encode())
    assert not Catalogue(tmp_path, "templates").has("templates/" + "a" * 300)


class Request:
    """What a handler was sent."""

    def __init__(self, body: bytes) -> None:
        self.request, self.body = self, body


@pytest.mark.parametrize(
    "body", [b"[1]", b'"a"', b"1", b"\xff", b"{", b"[" * 100_000, b'{"type": []}']
)
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    from jupyter_server.base.handlers import JupyterHandler

    mend()
    handler: Any = Request(body)
    with pytest.raises(HTTPError) as raised:
        JupyterHandler.get_json_body(handler)
    assert raised.value.status_code == 400
