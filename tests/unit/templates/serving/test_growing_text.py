"""A text that comes token by token is the text of all its tokens."""

import pytest
from growing_text import GrowingText, begun
from hypothesis import given
from hypothesis import strategies as st


def of_bytes(tokens: list[int]) -> str:
    """As a tokenizer whose tokens are bytes."""
    return bytes(tokens).decode(errors="replace")


def of_words(tokens: list[int]) -> str:
    """As a tokenizer that writes a space before each word but the first."""
    return " ".join(f"w{token}" for token in tokens)


def parts(text: GrowingText, tokens: list[int]) -> list[str]:
    return [*map(text.add, tokens), text.end()]


@given(st.lists(st.integers(0, 255) | st.sampled_from(list("é€😀".encode()))))
def test_the_parts_make_the_whole_text(tokens: list[int]) -> None:
    text = GrowingText(of_bytes)
    assert "".join(parts(text, tokens)) == text.text == of_bytes(tokens)


def test_a_character_is_given_when_it_is_whole() -> None:
    assert parts(GrowingText(of_bytes), list("a€b".encode())) == ["a", "", "", "€", "b", ""]
    assert parts(GrowingText(of_bytes), list("€".encode()[:2])) == [
        "",
        "",
        "\N{REPLACEMENT CHARACTER}",
    ]


def test_a_word_has_its_space() -> None:
    assert parts(GrowingText(of_words), [1, 2, 3]) == ["w1", " w2", " w3", ""]


@pytest.mark.parametrize(
    ("stop", "found", "is_stopped"),
    [
        (("two",), ["o", "n", "e", " ", "", "", ""], True),
        (("two!",), ["o", "n", "e", " ", "", "", "", "two "], False),
        (("x", "e t"), ["o", "n", "", "", ""], True),
    ],
)
def test_what_may_be_a_stop_is_held_back(
    stop: tuple[str, ...], found: list[str], is_stopped: bool
) -> None:
    text, given = GrowingText(of_bytes, stop), []
    for token in b"one two ":
        given.append(text.add(token))
        if text.is_stopped:
            break
    assert [*given, text.end()][: len(found)] == found
    assert text.is_stopped is is_stopped
    assert text.text == "".join(found)


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("ab", 0), ("a<", 1), ("a<e", 2), ("<en", 3), ("<end>", 0)]
)
def test_the_end_of_a_text_may_be_the_beginning_of_a_stop(text: str, count: int) -> None:
    assert begun(text, ("<end>", "x")) == count
