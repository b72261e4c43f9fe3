import pytest

from dsportal.session.tools import words


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        (words.ended("DIGITS", 3), ("DIGITS has ended", "exit code 3")),
        (words.silent("DIGITS", 60), ("DIGITS did not answer", "within 60 seconds")),
        (words.silent("DIGITS", 1), ("within 1 second.",)),
        (words.no_program("DIGITS", "digits"), ("program digits of DIGITS was not found.",)),
        (
            words.no_program("DIGITS", "digits", "a/1", "b/2"),
            ("program digits of DIGITS was not found with a/1, b/2 loaded.",),
        ),
        (words.not_started("DIGITS"), ("DIGITS could not be started",)),
        (words.stopped_while_starting("DIGITS"), ("DIGITS was stopped",)),
        (words.not_running("DIGITS"), ("DIGITS is not running",)),
        (words.no_tool("digits"), ("no tool digits",)),
    ],
)
def test_what_is_said_names_the_tool_and_the_reason(told: str, facts: tuple[str, ...]) -> None:
    assert [fact for fact in facts if fact not in told] == []
