"""Icons of the settings' kernels, which would all look like Python in the launcher."""

from html import escape
from pathlib import Path

# White letters on each have a contrast of at least 4.5.
_COLOURS = ("#c2410c", "#1d4ed8", "#be123c", "#0f766e", "#7e22ce", "#4d7c0f", "#0369a1", "#57534e")
_TILE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">
  <rect x="4" y="4" width="56" height="56" rx="12" fill="{colour}"/>
  <text x="32" y="32" dy=".35em" text-anchor="middle" fill="#fff"
        font-family="system-ui, sans-serif" font-weight="600" font-size="{size}">{letters}</text>
</svg>
"""


def letters_for(display_name: str) -> str:
    """Shorten a kernel's name to what fits on its tile.

    >>> [letters_for(name) for name in ("TensorFlow 2.21", "JAX 0.10", "Keras 3", "MXNet 1.9.1")]
    ['TF', 'JAX', 'Ke', 'MX']
    """
    word = display_name.split()[0]
    if word.isupper() and len(word) <= 3:
        return word
    capitals = [letter for letter in word if letter.isupper()]
    return "".join(capitals[:2]) if len(capitals) > 1 else word[:2]


def tile(display_name: str, place: int) -> str:
    """Draw a kernel's tile, an SVG; neighbours in the list of kernels differ in colour."""
    letters = letters_for(display_name)
    colour = _COLOURS[place % len(_COLOURS)]
    return _TILE.format(colour=colour, size=27 if len(letters) < 3 else 22, letters=escape(letters))


def folder_with_tile(folder: Path, display_name: str, place: int) -> str:
    """Return the folder, with the tile in it under the name that Jupyter looks for."""
    picture = folder / "logo-svg.svg"
    if not picture.exists():
        folder.mkdir(parents=True, exist_ok=True)
        picture.write_text(tile(display_name, place), encoding="utf-8")
    return str(folder)
