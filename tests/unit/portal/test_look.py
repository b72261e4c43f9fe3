"""The design: its colours can be read, and a site's own take their place."""

import re
from pathlib import Path

import pytest

from dsportal.colours import AA_TEXT, contrast
from dsportal.look import WEB, appearance
from dsportal.settings.look import DARK, LIGHT, LookSettings
from dsportal.settings_file import SettingsError

AA_SIGN = 3.0
"""Of WCAG 2.2, 1.4.11: the contrast of a field's border, or of a sign, at least."""

SHEET = (WEB / "design.css").read_text(encoding="utf-8")
COLOURS = dict(re.findall(r"--portal-([a-z-]+): light-dark\((#\w{6}, #\w{6})\)", SHEET))
TEXTS = ("ink", "ink-soft", "good", "warn", "bad")


def shades(name: str) -> tuple[str, str]:
    """Return a colour of the sheet for light and for dark pages."""
    if name == "accent":
        return LookSettings().accent, LookSettings().accent_dark
    light, dark = COLOURS[name].split(", ")
    return light, dark


@pytest.mark.parametrize("background", ["page", "surface"])
@pytest.mark.parametrize("text", [*TEXTS, "accent"])
def test_texts_can_be_read_on_every_background(text: str, background: str) -> None:
    for one, other in zip(shades(text), shades(background), strict=True):
        assert contrast(one, other) >= AA_TEXT


@pytest.mark.parametrize("background", ["accent", "bad"])
def test_what_is_written_on_a_button_can_be_read(background: str) -> None:
    for one, other in zip(shades("on-accent"), shades(background), strict=True):
        assert contrast(one, other) >= AA_TEXT


@pytest.mark.parametrize("background", ["page", "surface"])
def test_the_borders_of_fields_can_be_seen(background: str) -> None:
    for one, other in zip(shades("field-line"), shades(background), strict=True):
        assert contrast(one, other) >= AA_SIGN


def test_the_settings_measure_accents_on_the_pages_own_backgrounds() -> None:
    assert (shades("page")[0], shades("surface")[1]) == (LIGHT, DARK)
    # Those of the two on which an accent is harder to see.
    assert contrast(LIGHT, "#000000") < contrast(shades("surface")[0], "#000000")
    assert contrast(DARK, "#ffffff") < contrast(shades("page")[1], "#ffffff")


def test_the_sheet_has_the_settings_default_accents() -> None:
    assert f"--portal-accent-light: {LookSettings().accent};" in SHEET
    assert f"--portal-accent-dark: {LookSettings().accent_dark};" in SHEET


@pytest.mark.parametrize(
    ("key", "colour", "words"),
    [
        ("accent", "#ffcc00", r"accent #ffcc00 has a contrast of 1\.4:1 .* take a darker one"),
        ("accent_dark", "#3556c4", r"accent_dark #3556c4 has a contrast of .* take a lighter one"),
        ("accent", "blue", "must be a colour as #rrggbb"),
        ("support_url", "javascript:alert(1)", "must start with https://, http:// or mailto:"),
        ("logo_file", "/etc/logo.gif", r"must end with \.svg"),
    ],
)
def test_what_cannot_be_used_is_refused_with_words(key: str, colour: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LookSettings.model_validate({key: colour})


def test_a_sites_colours_and_rules_come_last(tmp_path: Path) -> None:
    own = tmp_path / "own.css"
    own.write_text(".portal-foot { display: none; }")
    look = appearance(LookSettings(accent="#006b5b", extra_css_file=str(own)))
    rules = look.stylesheet.split(SHEET)[1]
    assert "--portal-accent-light: #006b5b;" in rules
    assert rules.endswith(".portal-foot { display: none; }")


def test_browsers_ask_anew_when_logo_or_sheet_have_changed(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    logo.write_text("<svg/>")
    settings = LookSettings(logo_file=str(logo))
    before = appearance(settings).version
    assert appearance(settings).version == before
    logo.write_text("<svg></svg>")
    assert appearance(settings).version != before
    assert appearance(LookSettings(accent="#006b5b")).version != appearance(LookSettings()).version


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"look\.logo_file = .*none\.png: cannot be read"):
        appearance(LookSettings(logo_file=str(tmp_path / "none.png")))
