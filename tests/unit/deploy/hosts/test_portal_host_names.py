"""What role portal says of host names for users before it changes anything."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests import roles

ROLE = roles.ROLES / "portal"
ADDRESS = "https://portal.site.test:8000"
ELSEWHERE = {"portal_tls_elsewhere": True}
INVENTORIES: dict[str, dict[str, object]] = {
    "all_names": {"portal_subdomain_host": ADDRESS, "portal_certificate": "all.crt"},
    "one": {"portal_subdomain_host": ADDRESS, "portal_certificate": "one.crt"},
    "no_host_names": {"portal_certificate": "one.crt"},
    "no_certificate": {"portal_subdomain_host": ADDRESS},
    "elsewhere": {"portal_subdomain_host": ADDRESS, **ELSEWHERE},
    "http": {"portal_subdomain_host": "http://portal.site.test", **ELSEWHERE},
    "number": {"portal_subdomain_host": "https://10.0.0.1", **ELSEWHERE},
    "no_scheme": {"portal_subdomain_host": "portal.site.test", **ELSEWHERE},
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for the portal's name alone, one for all names below it, too."""
    folder = tmp_path_factory.mktemp("certificates")
    for name, names in (("one", ""), ("all", ",DNS:*.portal.site.test")):
        argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test"]
        argv += ["-addext", f"subjectAltName=DNS:portal.site.test{names}"]
        argv += ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt"]
        subprocess.run(argv, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def refusals(certificates: Path) -> dict[str, str]:
    """What the role says of each inventory that it refuses: all as hosts of one, to start once."""
    hosts: dict[str, dict[str, object]] = {}
    for name, variables in INVENTORIES.items():
        hosts[name] = dict(variables)
        if "portal_certificate" in variables:
            file = certificates / str(variables["portal_certificate"])
            hosts[name] |= {"portal_certificate": str(file), "portal_certificate_key": "x"}
    given: dict[str, object] = {"instance_etc": str(certificates), "instance_address": "127.0.0.1"}
    for part in ("defaults", "vars"):
        given |= yaml.safe_load((ROLE / part / "main.yml").read_text())
    # No Slurm is asked.
    given |= {"portal_is_attached": False}
    tasks = [{"import_tasks": str(ROLE / "tasks/validate.yml")}]
    return roles.refusals(roles.played(certificates, hosts, given, tasks))


def test_a_certificate_for_all_names_is_well(refusals: dict[str, str]) -> None:
    assert "all_names" not in refusals


def test_a_certificate_for_the_portal_alone_is_refused(refusals: dict[str, str]) -> None:
    assert "no_host_names" not in refusals
    assert "any-user.portal.site.test does NOT match certificate" in refusals["one"]
    assert "and *.portal.site.test" in refusals["one"]


def test_without_https_or_a_name_they_are_refused(refusals: dict[str, str]) -> None:
    assert "portal_tls_elsewhere" in refusals["no_certificate"]
    assert "elsewhere" not in refusals
    for wrong in ("http", "number", "no_scheme"):
        assert "must be https://NAME" in refusals[wrong], wrong
