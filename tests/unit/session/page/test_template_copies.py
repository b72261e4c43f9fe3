import json
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.page.template_copies import copy_from, name_of_copy, set_parameter
from dsportal.session.page.templates import Catalogue

SHIPPED = Path(__file__).parents[4] / "notebook_templates"


def with_parameters(*sources: str) -> dict[str, Any]:
    """Return a notebook of code cells, the last of them with the parameters, as contents has it."""
    cells = [{"cell_type": "code", "metadata": {}, "source": source} for source in sources]
    cells[-1]["metadata"] = {"tags": ["parameters"]}
    return {"cells": cells}


def parameters_of(notebook: Path) -> str:
    """Return the cell with the parameters; empty where there is none."""
    cells = json.loads(notebook.read_text())["cells"]
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
    return "".join("".join(cell["source"]) for cell in tagged)


def test_a_parameter_is_set_where_it_is_assigned_and_its_comment_stays() -> None:
    own = 'program = "mine"\n'
    notebook = with_parameters(own, 'a = 1\nprogram = ""  # yours; "": ours\nprograms = "2"\n')
    assert set_parameter(notebook, "program", "train_1.py")
    assert [cell["source"] for cell in notebook["cells"]] == [
        own,
        'a = 1\nprogram = "train_1.py"  # yours; "": ours\nprograms = "2"\n',
    ]


@pytest.mark.parametrize("source", ["", "program = 1", 'my_program = ""', '# program = ""'])
def test_a_parameter_that_is_no_text_or_not_there_is_not_set(source: str) -> None:
    notebook = with_parameters(source)
    assert not set_parameter(notebook, "program", "train.py")
    assert notebook == with_parameters(source)


def test_a_shipped_template_comes_with_each_file_that_its_parameters_name() -> None:
    catalogue = Catalogue(SHIPPED.parent, SHIPPED.name)
    with_files = set()
    for notebook in sorted(SHIPPED.glob("*/*.ipynb")):
        source = parameters_of(notebook)
        companions = catalogue.companions(str(notebook.relative_to(SHIPPED.parent)))
        for one in companions:
            copy = with_parameters(source)
            assert set_parameter(copy, one.parameter, one.named(one.file.name)), notebook
        if companions:
            with_files.add(notebook)
        names_a_file = '"~/templates/' in source or "the one among the templates" in source
        assert names_a_file == bool(companions), notebook
    assert len(with_files) > 10


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("templates/pytorch/mnist.ipynb", "pytorch-mnist.ipynb"),
        ("templates/inference/inference.ipynb", "inference.ipynb"),
        ("templates/slurm/sample.job", "sample.job"),
        ("templates/top.ipynb", "top.ipynb"),
    ],
)
def test_the_copy_of_a_notebook_names_its_framework(path: str, name: str) -> None:
    assert name_of_copy(path) == name


def test_a_request_names_path_and_folder() -> None:
    assert copy_from(b'{"path": "/templates/a.py", "folder": "work/"}') == (
        "templates/a.py",
        "work",
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"path": "templates/a.py"}',
        b'{"path": 1, "folder": ""}',
        b'{"path": "templates/a.py", "folder": null}',
        b'{"path": "templates/a.py", "folder": "", "more": 1}',
        b'{"path": "templates/../../etc/passwd", "folder": ""}',
        b'{"path": "templates/a\\u0000b", "folder": ""}',
    ],
)
def test_another_request_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"The body must be|is not a path below the home"):
        copy_from(body)
