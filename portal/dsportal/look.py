"""The design as pages load it: one style sheet, the logo, and the site's words.

The sheet is ``web/design.css``, with the site's colours and own rules behind it. The hub keeps it
in memory and serves it below its own address (``stylesheet``); browsers keep it too, since its
address has a hash of its content. The portal's services link to the hub's.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from dsportal.settings.look import LookSettings
from dsportal.settings_file import SettingsError

WEB = Path(__file__).parent / "web"
"""Templates and pictures of the pages."""

DOCUMENTATION = "portal/docs/"
"""Where the documentation is, below the hub's own address."""


@dataclass(frozen=True)
class Appearance:
    """Design values that templates get as ``look``."""

    title: str
    support: str
    support_url: str
    accent: str
    accent_dark: str
    logo_file: Path
    documentation_dir: str
    """Empty where there is none."""
    stylesheet: str
    version: str
    """Changes whenever a browser must not use what it has kept."""

    def for_sessions(self) -> dict[str, str]:
        """Give what JupyterLab shows of it."""
        return {
            "title": self.title,
            "support": self.support,
            "support_url": self.support_url,
            "accent": self.accent,
            "accent_dark": self.accent_dark,
            "version": self.version,
            "documentation": DOCUMENTATION if self.documentation_dir else "",
        }


def appearance(look: LookSettings) -> Appearance:
    """Read the files that the settings name.

    Raises `SettingsError` for one that cannot be read.
    """
    logo = Path(look.logo_file) if look.logo_file else WEB / "logo.svg"
    sheet = "\n".join(
        (
            (WEB / "design.css").read_text(encoding="utf-8"),
            f":root {{ --portal-accent-light: {look.accent};"
            f" --portal-accent-dark: {look.accent_dark}; }}",
            _read("extra_css_file", look.extra_css_file).decode(errors="replace"),
        )
    )
    content = sheet.encode() + _read("logo_file", str(logo))
    return Appearance(
        title=look.title,
        support=look.support,
        support_url=look.support_url,
        accent=look.accent,
        accent_dark=look.accent_dark,
        logo_file=logo,
        documentation_dir=look.documentation_dir,
        stylesheet=sheet,
        version=hashlib.sha256(content).hexdigest()[:12],
    )


def _read(key: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes() if file else b""
    except OSError as error:
        raise SettingsError(f"look.{key} = {file}: cannot be read: {error.strerror}") from error
