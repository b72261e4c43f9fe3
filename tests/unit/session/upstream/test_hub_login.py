import asyncio
from typing import Any

import pytest
from jupyterhub.singleuser import extension

from dsportal.session.upstream.hub_login import (
    DISABLED_PLUGINS,
    HubLogin,
    _without_plugins,
    is_login_of_the_hub,
)


def test_plugins_are_taken_from_the_page_beside_those_of_the_site() -> None:
    def hook(handler: Any, config: dict[str, Any]) -> dict[str, Any]:
        return config | {"hubUser": "user1"}

    config = _without_plugins(hook)(None, {"disabledExtensions": ["@site/extension"]})
    assert config["hubUser"] == "user1"
    assert config["disabledExtensions"] == ["@site/extension", *DISABLED_PLUGINS]


def test_a_page_without_a_list_gets_one() -> None:
    config = _without_plugins(lambda handler, given: given)(None, {})
    assert config["disabledExtensions"] == [*DISABLED_PLUGINS]


def test_another_login_is_not_the_hubs() -> None:
    assert not is_login_of_the_hub(object())


def test_a_hub_that_does_not_answer_ends_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def silent(url: str, **_: Any) -> None:
        asked.append(url)
        raise OSError("Network is unreachable")

    async def at_once(_: float) -> None:
        """Wait for nothing."""

    async def report(_: HubLogin) -> None:
        asked.append("a report")

    monkeypatch.setattr(extension, "fetch", silent)
    monkeypatch.setattr(asyncio, "sleep", at_once)
    monkeypatch.setattr(extension.JupyterHubSingleUser, "keep_activity_updated", report)
    monkeypatch.setattr(extension.JupyterHubSingleUser, "hub_http_client_opts", {})
    server = HubLogin()
    server.hub_auth = extension.HubOAuth(api_url="http://hub.test/hub/api", api_token="x")
    asyncio.run(server.keep_activity_updated())
    assert asked == ["http://hub.test/hub/api"] * 5 + ["a report"]
