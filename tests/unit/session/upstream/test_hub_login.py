from typing import Any

from dsportal.session.upstream.hub_login import (
    DISABLED_PLUGINS,
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
