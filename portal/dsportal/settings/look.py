"""Settings of the design."""

from typing import Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from dsportal.colours import AA_TEXT, contrast
from dsportal.settings.table import Table, setting
from dsportal.values import Colour, Name, OptionalPath, OptionalPicture, SupportUrl, Text

LIGHT, DARK = "#f6f7f9", "#1a2029"
"""What the accent is seen on, and what is written on it differs less: design.css has them."""


class LookSettings(Table):
    """Appearance of the hub's pages, the portal's services and JupyterLab."""

    title: Name = setting("Data Scientist Portal", "The portal's name, next to its logo.")
    logo_file: OptionalPicture = setting(
        "",
        "A picture (.svg, .png, .jpg or .webp) instead of the portal's logo; it must be visible "
        "on light and on dark pages.",
    )
    accent: Colour = setting(
        "#3556c4",
        "The colour of buttons and links on light pages, as `#rrggbb`; white text on it must have "
        "a contrast of 4.5:1.",
    )
    accent_dark: Colour = setting(
        "#9db4ff",
        "The same for dark pages; it must have a contrast of 4.5:1 with their background.",
    )
    follows_system: bool = setting(
        True,
        "Whether JupyterLab follows the light or dark mode of the user's system until the user "
        "chooses a theme; the hub's pages always do.",
    )
    support: Text = setting(
        "",
        "Where users find help, in a few words, shown at the foot of each page and at the login.",
    )
    support_url: SupportUrl = setting(
        "", "The link behind these words: a page (https://...) or an address (mailto:...)."
    )
    documentation_dir: OptionalPath = setting(
        "",
        "The folder with the documentation site, which **Help** opens on the hub's pages and in "
        "JupyterLab; empty for no such link. The deployment builds it.",
    )
    extra_css_file: OptionalPath = setting(
        "", "A style sheet of the site's own, loaded after the portal's on the hub's pages."
    )

    @model_validator(mode="after")
    def _accents_can_be_read(self) -> Self:
        for key, colour, page in (
            ("accent", self.accent, LIGHT),
            ("accent_dark", self.accent_dark, DARK),
        ):
            found = contrast(colour, page)
            if found < AA_TEXT:
                raise PydanticCustomError(
                    "rule",
                    "{key} {colour} has a contrast of {found}:1 with the page ({page}), and needs "
                    "{needed}:1: take a {direction} one",
                    {
                        "key": key,
                        "colour": colour,
                        "found": f"{found:.1f}",
                        "page": page,
                        "needed": AA_TEXT,
                        "direction": "darker" if page == LIGHT else "lighter",
                    },
                )
        return self
