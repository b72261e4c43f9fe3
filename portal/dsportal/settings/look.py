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
    """How the hub's pages, the portal's services and JupyterLab look."""

    title: Name = setting("Data Scientist Portal", "The portal's name, beside its logo.")
    logo_file: OptionalPicture = setting(
        "",
        "A picture (.svg, .png, .jpg or .webp) in place of the portal's logo; it must be seen on "
        "light and on dark pages.",
    )
    accent: Colour = setting(
        "#3556c4",
        "The colour of buttons and links on light pages, as `#rrggbb`; white text on it must have "
        "a contrast of 4.5:1.",
    )
    accent_dark: Colour = setting(
        "#9db4ff",
        "The same on dark pages; it must have a contrast of 4.5:1 with them.",
    )
    follows_system: bool = setting(
        True,
        "Whether JupyterLab is light or dark as the user's system is, until the user chooses a "
        "theme; the hub's pages always are.",
    )
    support: Text = setting(
        "", "Where users find help, in a few words: at the foot of each page and at the login."
    )
    support_url: SupportUrl = setting(
        "", "Where these words lead to: a page (https://...) or an address (mailto:...)."
    )
    documentation_dir: OptionalPath = setting(
        "",
        "The folder with the documentation as a site, which **Help** on the hub's pages and in "
        "JupyterLab opens; empty: there is no such link. The deployment builds it.",
    )
    extra_css_file: OptionalPath = setting(
        "", "A style sheet of the site's own, behind the portal's, for the hub's pages."
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
