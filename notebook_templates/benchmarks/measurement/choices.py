"""What an option of a measurement may be."""


class SettingError(ValueError):
    """An option cannot be; the message names it, its value and the rule."""


def whole(name: str, value: object) -> int:
    """Read a whole number from 1 on. Raises `SettingError`."""
    if not str(value).strip().isdecimal() or int(str(value)) < 1:
        raise SettingError(f"{name} is {value!r}; it must be a whole number, at least 1")
    return int(str(value))


def doubled(most: int) -> list[int]:
    """Return 1, 2, 4 and so on, and the most.

    >>> doubled(8), doubled(10)
    ([1, 2, 4, 8], [1, 2, 4, 8, 10])
    """
    return sorted({*(2**power for power in range(most.bit_length())), most})
