"""docs/reference/settings.md is made from the settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsportal import cli, reference
from dsportal.settings.table import Table
from dsportal.settings.whole import Settings

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "settings.md"


def tables(table: type[Table]) -> Iterator[type[Table]]:
    for field in table.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Table):
            yield field.annotation
            yield from tables(field.annotation)


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.page(), (
        "run: python -m dsportal.cli settings reference docs/reference/settings.md"
    )


def test_every_key_has_a_sentence() -> None:
    for table in tables(Settings):
        for key, field in table.model_fields.items():
            if not isinstance(field.annotation, type) or not issubclass(field.annotation, Table):
                assert (field.description or "").endswith("."), f"{table.__name__}.{key}"


def test_a_key_with_a_unit_in_its_name_has_it_in_the_page() -> None:
    for line in reference.page().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if cells[1:2] and cells[1].endswith("_seconds`"):
            assert cells[3] == "seconds", line


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file = tmp_path / "settings.md"
    assert cli.main(["settings", "reference", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == reference.page()


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["settings", "reference"]) == 0
    assert capsys.readouterr().out == reference.page()


def test_the_check_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "portal.toml"
    file.write_text("weather = 1\n")
    assert cli.main(["settings", "check", str(file)]) == 1
    assert f"{file}:1: weather: is not a known key\n" in capsys.readouterr().err


def test_the_check_is_content_with_a_good_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "portal.toml"
    file.write_text(
        '[authentication]\nmethod = "pam"\nadmin_groups = ["a"]\n[session]\npython = "/p"\n'
    )
    assert cli.main(["settings", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: good\n"


def test_the_check_of_a_part_says_nothing_of_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "portal_settings.json"
    file.write_text('{"hub": {"max_named_servers": 3}}')
    assert cli.main(["settings", "check", "--part", str(file)]) == 0
    file.write_text('{"hub": {"max_named_server": 3}}')
    assert cli.main(["settings", "check", "--part", str(file)]) == 1
    said = "hub.max_named_server: is not a known key; did you mean max_named_servers?\n"
    assert capsys.readouterr().err == said
