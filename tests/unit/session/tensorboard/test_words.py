import pytest

from dsportal.session.tensorboard import words


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        (words.no_folder("~/a"), ("no folder ~/a.",)),
        (words.dead_link("~/a", "/b"), ("~/a is a link to /b",)),
        # What is no path is shown as one could type it.
        (words.outside("~/a\0b"), (r"'~/a\x00b'", "below your home")),
        (words.no_way("~/a", "/b"), ("not open ~/a,", "leads to /b.")),
        (words.unreadable("~/a"), ("not read ~/a.",)),
        (words.cannot_be_opened("~/a", "File exists"), ("~/a cannot be opened: File exists.",)),
        (words.is_a_file("~/a"), ("~/a is a file",)),
        (words.silent_files("~/a"), ("storage that holds ~/a is not responding",)),
        (words.not_started("~/a"), ("for ~/a did not start", "log")),
        (words.too_many(2), ("2 TensorBoards", "Stop one")),
        (words.no_curves("~/a"), ("No curves in ~/a",)),
        (words.question("~/a"), ("~/a?",)),
    ],
)
def test_a_page_names_the_folder_and_the_reason(told: str, facts: tuple[str, ...]) -> None:
    assert [fact for fact in facts if fact not in told] == []
