"""Contrast of two colours, as WCAG 2.2 defines it.

https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
"""

AA_TEXT = 4.5
"""What text must have at least (success criterion 1.4.3)."""


def contrast(one: str, other: str) -> float:
    """Give the contrast of two colours, as ``#rrggbb``: from 1 to 21.

    >>> round(contrast("#ffffff", "#000000"), 1), round(contrast("#777777", "#ffffff"), 2)
    (21.0, 4.48)
    """
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
