import json
from pathlib import Path, PurePosixPath

import pytest

from dsportal.session.page.templates import (
    Catalogue,
    Template,
    described,
    heading_and_paragraph,
)
from dsportal.session.page.templates_file import groups_in


def notebook(*markdown: str, kernel: str = "PyTorch 2.13") -> bytes:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": list(markdown)}]
    kernelspec = {"name": "pytorch", "display_name": kernel}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": kernelspec}}).encode()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a link to templates elsewhere."""
    site = tmp_path / "share"
    for name in ("pytorch/mnist.ipynb", "data/prepare.ipynb", "data/shards.py"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(notebook("# About ", name))
    (site / "pytorch/.ipynb_checkpoints").mkdir()
    (site / "pytorch/.ipynb_checkpoints/mnist-checkpoint.ipynb").write_bytes(notebook("# Old"))
    home = tmp_path / "home"
    home.mkdir()
    (home / "templates").symlink_to(site)
    return home


def test_templates_are_listed_by_folder_with_what_they_say(home: Path) -> None:
    found = Catalogue(home, "templates").templates()
    assert [(one.path, one.folder, one.title) for one in found] == [
        ("templates/data/prepare.ipynb", "data", "About data/prepare.ipynb"),
        ("templates/pytorch/mnist.ipynb", "pytorch", "About pytorch/mnist.ipynb"),
    ]


def test_a_folders_own_order_lists_its_groups_first_and_the_rest_by_folder(home: Path) -> None:
    (home / "templates/templates.toml").write_text(
        '[[groups]]\ntitle = "Start here"\ntemplates = ["pytorch/mnist.ipynb", "data/none"]\n'
    )
    found = Catalogue(home, "templates").templates()
    assert [(one.group, one.path) for one in found] == [
        ("Start here", "templates/pytorch/mnist.ipynb"),
        ("data", "templates/data/prepare.ipynb"),
    ]


@pytest.mark.parametrize("text", ["[[groups]", "groups = 1", "[[groups]]\ntitle = 'A'", "\xff"])
def test_a_broken_order_is_told_and_orders_nothing(
    home: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (home / "templates/templates.toml").write_bytes(text.encode("latin-1"))
    found = Catalogue(home, "templates").templates()
    assert [one.group for one in found] == ["data", "pytorch"]
    assert "order of the templates" in caplog.text


def test_the_shipped_templates_begin_with_where_to_start_and_end_with_measuring() -> None:
    shipped = Path(__file__).parents[4] / "notebook_templates"
    found = Catalogue(shipped.parent, shipped.name).templates()
    listed = groups_in(shipped).listed
    assert listed[0][0] == "Start here"
    assert found[0].group == "Start here"
    assert all(one.folder == "benchmarks" for one in found if one.group == listed[-1][0])
    # Each is in a group, and each entry of a group is there.
    assert {one.group for one in found} == {title for title, _ in listed}
    assert all((shipped / entry).exists() for _, entries in listed for entry in entries)


def test_a_changed_template_is_read_anew_and_another_is_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue(home, "templates")
    catalogue.templates()
    read: list[str] = []
    whole = Path.read_bytes

    def noted(path: Path) -> bytes:
        read.append(path.name)
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    (home / "templates/pytorch/mnist.ipynb").write_bytes(notebook("# Digits, anew"))
    assert [one.title for one in catalogue.templates()][-1] == "Digits, anew"
    assert read == ["mnist.ipynb"]


def test_a_template_that_cannot_be_read_keeps_no_other_from_the_list(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (home / "templates/data/gone.ipynb").symlink_to("nowhere")
    (home / "templates/data/deep.ipynb").write_text("[" * 100_000)
    found = Catalogue(home, "templates").templates()
    names = [one.path.rpartition("/")[2] for one in found]
    assert names == ["deep.ipynb", "prepare.ipynb", "mnist.ipynb"]
    assert "gone.ipynb" in caplog.text


def test_without_templates_the_list_is_empty(home: Path) -> None:
    assert Catalogue(home, "").templates() == []
    assert Catalogue(home, "nowhere").templates() == []
    assert not Catalogue(home, "").has("templates/data/prepare.ipynb")


def test_only_files_among_the_templates_are_copied(home: Path) -> None:
    (home / "secret.txt").write_text("mine")
    (home / "templates/data/leads_out.py").symlink_to(home / "secret.txt")
    catalogue = Catalogue(home, "templates")
    assert catalogue.has("templates/data/shards.py")
    for path in (
        "secret.txt",
        "templates",
        "templates/data",
        "templates/data/none.py",
        "templates/data/leads_out.py",
        "templates/../secret.txt",
        "",
    ):
        assert not catalogue.has(path), path


def test_what_is_copied_with_a_template_is_a_file_among_them(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (home / "secret.py").write_text("mine")
    (home / "templates/data/leads_out.py").symlink_to(home / "secret.py")
    (home / "templates/templates.toml").write_text(
        '[companions]\n"data/prepare.ipynb" = '
        '{ program = "data/shards.py", a = "data/leads_out.py", b = "../secret.py" }\n'
    )
    catalogue = Catalogue(home, "templates")
    (found,) = catalogue.companions("templates/data/prepare.ipynb")
    assert catalogue.path_of(found) == "templates/data/shards.py"
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == [
        PurePosixPath("data/leads_out.py"),
        PurePosixPath("../secret.py"),
    ]
    assert catalogue.companions("templates/pytorch/mnist.ipynb") == []


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"cells": []}', b'{"cells": [{"source": 1}]}', b"\xff"]
)
def test_a_broken_template_has_its_name(content: bytes) -> None:
    found = described(PurePosixPath("templates/r/mnist.ipynb"), content)
    assert found == Template("templates/r/mnist.ipynb", "r", "mnist", "", "")


def test_a_template_names_its_kernel() -> None:
    found = described(PurePosixPath("templates/top.ipynb"), notebook("Words, no heading."))
    assert found == Template("templates/top.ipynb", "", "top", "Words, no heading.", "PyTorch 2.13")


@pytest.mark.parametrize(
    ("markdown", "heading", "paragraph"),
    [
        ("", "", ""),
        ("# One", "One", ""),
        ("# One\n\nTwo\nlines.\n\nMore.", "One", "Two lines."),
        ("## One\nTwo.\n\nMore.", "One", "Two."),
        ("No heading.", "", "No heading."),
        ("# A\n\nRun `f` **now**.", "A", "Run f now."),
        ("# A\n\n" + "word " * 100, "A", "word " * 38 + "word\u2026"),
    ],
)
def test_a_notebook_begins_with_heading_and_paragraph(
    markdown: str, heading: str, paragraph: str
) -> None:
    assert heading_and_paragraph(markdown) == (heading, paragraph)
