import json

import pytest

from dsportal.session.sharing.access import Audience, SharingError
from dsportal.session.sharing.routes import Sharing, order_from, routes


def test_an_order_names_a_notebook_and_whom() -> None:
    body = {"path": "/a/b.ipynb", "kind": "group", "names": ["lab"]}
    assert order_from(json.dumps(body).encode()) == ("a/b.ipynb", Audience("group", ("lab",)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"path": "a.ipynb"}',
        b'{"path": 1, "kind": "link", "names": []}',
        b'{"path": "../a.ipynb", "kind": "link", "names": []}',
        b'{"path": "a\\u0000.ipynb", "kind": "link", "names": []}',
        b'{"path": "a.ipynb", "kind": "link", "names": [], "more": 1}',
        b'{"path": "a.ipynb", "kind": "all", "names": []}',
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(SharingError):
        order_from(body)


def test_nothing_answers_where_sharing_is_off() -> None:
    assert routes("/user/ann/", Sharing("", "ann", {})) == []
    assert len(routes("/user/ann/", Sharing("/nas/{user}", "ann", {}))) == 3
