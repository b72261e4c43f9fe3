"""A text that a model writes token by token, in parts that stay as they are.

A token may be a part of a character, or of a text that ends the answer: what the next tokens may
still change is held back.
"""

from collections.abc import Callable, Sequence

from completions import until_stop

_NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"  # in the place of bytes that are none, or not yet


class GrowingText:
    """A text and its end."""

    def __init__(self, decode: Callable[[list[int]], str], stop: Sequence[str] = ()) -> None:
        """``decode`` makes text of tokens; ``stop`` are the texts before which it ends."""
        self._decode, self._stop = decode, stop
        self._tokens: list[int] = []
        # Decoded anew for each token: those before the last part, without which some tokenizers
        # leave out a space, and those after it.
        self._before, self._after = 0, 0
        self._held = ""
        self.text = ""
        """All parts."""
        self.is_stopped = False

    def add(self, token: int) -> str:
        """Take the next token; return the next part, which may be empty."""
        self._tokens.append(token)
        new = self._new()
        if not new or new.endswith(_NO_CHARACTER):
            return ""
        self._before, self._after = self._after, len(self._tokens)
        return self._part(new, is_last=False)

    def end(self) -> str:
        """Return what was held back, as no token follows."""
        return "" if self.is_stopped else self._part(self._new(), is_last=True)

    def _new(self) -> str:
        before = self._decode(self._tokens[self._before : self._after])
        return self._decode(self._tokens[self._before :])[len(before) :]

    def _part(self, new: str, *, is_last: bool) -> str:
        part, self.is_stopped = until_stop(self._held + new, self._stop)
        held = 0 if is_last or self.is_stopped else begun(part, self._stop)
        self._held = part[len(part) - held :]
        part = part[: len(part) - held]
        self.text += part
        return part


def begun(text: str, stop: Sequence[str]) -> int:
    """Return how many characters at the end of a text may be the beginning of one of ``stop``."""
    longest = max(map(len, stop), default=1) - 1
    ends = (text[-count:] for count in range(min(longest, len(text)), 0, -1))
    return next((len(end) for end in ends if any(one.startswith(end) for one in stop)), 0)
