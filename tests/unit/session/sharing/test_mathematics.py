import json
import re
from typing import Any

import pytest

from dsportal.session.sharing.mathematics import mathml
from dsportal.session.sharing.render import page


def shown(*, source: str = "", output: dict[str, Any] | None = None) -> str:
    """Return the page of a notebook with one cell; what its style sheet says is left out."""
    text = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": source}
    put_out = {"output_type": "display_data", "metadata": {}, "data": output or {"text/plain": "1"}}
    code = {
        "cell_type": "code",
        "id": "b",
        "execution_count": 1,
        "metadata": {},
        "source": "",
        "outputs": [put_out],
    }
    notebook = {"cells": [text, code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    html = page(json.dumps(notebook))
    return re.sub(r"<(style|script).*?</\1>", "", html, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("source", "display"),
    [
        (r"The loss is $-\log p_y$.", "inline"),
        (r"$$\frac{1}{n}\sum_{i=1}^n x_i$$", "block"),
        ("\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}", "block"),
    ],
)
def test_a_formula_of_a_text_is_drawn(source: str, display: str) -> None:
    html = shown(source=source)
    assert f'<math display="{display}"' in html
    assert "\\" not in html.partition("<main")[2]


def test_a_fraction_is_one() -> None:
    drawn = str(mathml(r"\frac{1}{2}", is_block=False))
    assert re.search(r"<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>", drawn)


def test_a_formula_that_a_cell_puts_out_is_drawn() -> None:
    assert "<msup>" in shown(output={"text/latex": r"$\displaystyle x^{2}$", "text/plain": "x**2"})


def test_what_has_html_keeps_it() -> None:
    html = shown(output={"text/latex": "$x^{2}$", "text/html": "<b>mine</b>"})
    assert "<b>mine</b>" in html
    assert "<msup>" not in html


@pytest.mark.parametrize("source", [r"$\frac{$", r"$\left($", r"\begin{align}", "costs $5"])
def test_what_is_no_formula_stays_as_it_was_typed(source: str) -> None:
    assert source in shown(source=source)
