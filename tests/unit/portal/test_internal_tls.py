"""The hub's certificates for its own parts."""

import shutil
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from jupyterhub.app import JupyterHub

from dsportal.hub import internal_tls, tls
from dsportal.settings.hub import HubSettings

NOW = datetime.now(UTC)
ALL = ["hub-internal", "proxy-api", "proxy-client"]


@pytest.fixture(autouse=True)
def one_hub_at_a_time() -> Iterator[None]:
    yield
    JupyterHub.clear_instance()


def made_for(folder: Path, address: str = "http://10.0.0.1:8081") -> HubSettings:
    return HubSettings(state_dir=str(folder), internal_ssl=True, api_url=address)


@dataclass(frozen=True)
class First:
    """A hub whose certificates have been made, which takes a second."""

    state: Path
    made: list[str]
    copy: Path


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> First:
    state = tmp_path_factory.mktemp("hub")
    made = internal_tls.prepare(made_for(state), NOW)
    JupyterHub.clear_instance()
    copy = tmp_path_factory.mktemp("copies") / "hub"
    return First(state, made, shutil.copytree(state, copy))


@pytest.fixture
def state(first: First) -> Path:
    """The hub's folder as it was when they had been made: they name each other by their paths."""
    shutil.rmtree(first.state)
    shutil.copytree(first.copy, first.state)
    return first.state


def test_they_are_made_once(first: First, state: Path) -> None:
    assert first.made == ALL
    assert internal_tls.prepare(made_for(state), NOW) == []


def test_only_the_hubs_user_reads_the_keys(state: Path) -> None:
    hub = made_for(state)
    folder = Path(hub.certificates_dir)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {key.stat().st_mode & 0o777 for key in folder.rglob("*.key")} == {0o600}


def test_another_address_of_the_hub_makes_new_ones_by_the_same_authorities(state: Path) -> None:
    before = made_for(state)
    folder = Path(before.certificates_dir)
    authority = (folder / "hub-ca/hub-ca.crt").read_bytes()
    assert internal_tls.prepare(made_for(state, "http://head:8081"), NOW) == ALL
    names = (
        internal_tls.certificate(folder, "hub-internal")
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
    )
    assert "head" in names.get_values_for_type(x509.DNSName)
    assert (folder / "hub-ca/hub-ca.crt").read_bytes() == authority


def test_they_are_renewed_a_year_before_they_end(state: Path) -> None:
    hub = made_for(state)
    assert internal_tls.prepare(hub, NOW + timedelta(days=3 * 365)) == []
    assert internal_tls.prepare(hub, NOW + timedelta(days=4 * 365 + 30)) == ALL


def test_the_machines_own_authorities_do_not_count(state: Path) -> None:
    hub = made_for(state)
    context = tls.client_context(hub)
    assert context is not None
    subjects = [dict(pair for part in one["subject"] for pair in part) for one in trusted(context)]
    assert {subject["commonName"] for subject in subjects} == {
        "hub-ca",
        "notebooks-ca",
        "proxy-api-ca",
        "proxy-client-ca",
        "services-ca",
    }


def trusted(context: ssl.SSLContext) -> list[Any]:
    return list(context.get_ca_certs())


def test_without_internal_ssl_there_is_none(tmp_path: Path) -> None:
    assert tls.client_context(HubSettings(state_dir=str(tmp_path))) is None
