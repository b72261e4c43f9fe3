from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.onefs import StandIn, stand_in


@pytest.fixture
def nas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in for the NAS, which the programs under test trust and may log in to."""
    folder = tmp_path / "data"
    folder.mkdir()
    with stand_in(folder, "/ifs/data", tmp_path) as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        yield running
