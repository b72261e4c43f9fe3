"""A test instance has one user at a time."""

from pathlib import Path

import pytest

from tests import instance


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is deployed, in the place of a whole instance."""
    did: list[str] = []
    monkeypatch.setattr(instance, "_LOCKS", tmp_path)
    monkeypatch.setattr(instance, "SETTINGS", tmp_path / "portal.toml")
    monkeypatch.setattr(instance, "deploy", lambda verb, *_: did.append(verb))
    monkeypatch.setattr(instance, "_trust_its_authority", lambda: None)
    monkeypatch.delenv("PORTAL_TEST_KEEP", raising=False)
    (tmp_path / "portal.toml").touch()
    return did


def test_an_instance_that_others_use_is_left_alone(deployed: list[str]) -> None:
    with (
        instance.running(),
        pytest.raises(RuntimeError, match="in use by other tests or a benchmark"),
        instance.running(),
    ):
        pass
    assert deployed == ["up", "down"]
    with instance.running():
        pass
    assert deployed == ["up", "down"] * 2


def test_a_benchmark_may_join_the_tests(
    deployed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with instance.running():
        monkeypatch.setenv("PORTAL_TEST_KEEP", "1")
        with instance.running():
            assert deployed == ["up"]
