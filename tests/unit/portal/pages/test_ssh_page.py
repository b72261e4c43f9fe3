import pytest

from dsportal.hub.pages.ssh_page import token_days


@pytest.mark.parametrize(
    ("longest", "days"),
    [(0, (1, 7, 30)), (86_400 * 30, (1, 7, 30)), (86_400 * 7 - 1, (1,)), (3600, ())],
)
def test_no_token_is_offered_for_longer_than_the_hub_gives(
    longest: int, days: tuple[int, ...]
) -> None:
    assert token_days(longest) == days
