import json
import os
import re
import subprocess
import sys

from dsportal.session.sharing.render import MOST_BYTES, page
from tests.checkout import PYTHONPATH


def test_a_notebook_becomes_a_page_whose_links_leave_the_frame() -> None:
    notebook = {
        "cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Digits"},
            {
                "cell_type": "code",
                "id": "b",
                "execution_count": 1,
                "metadata": {},
                "source": "print(1)",
                "outputs": [{"output_type": "stream", "name": "stdout", "text": "98.9 %"}],
            },
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    html = page(json.dumps(notebook))
    assert '<base target="_blank">' in html
    assert re.search(r"<h1[^>]*>Digits<", html)
    assert "98.9 %" in html
    # Its reader's system decides which theme it is shown in.
    light, dark = html.index("--jp-layout-color0: white"), html.index("--jp-layout-color0: #111")
    media = html.index('<style media="(prefers-color-scheme: dark)"')
    assert light < media < dark
    assert html.count("<style", media) == 1
    # Nothing is fetched from elsewhere.
    assert 'src="http' not in html


def test_a_notebook_that_becomes_too_long_a_page_is_not_shown() -> None:
    data = {"text/html": "x" * MOST_BYTES}
    output = {"output_type": "display_data", "metadata": {}, "data": data}
    cell = {"cell_type": "code", "id": "a", "execution_count": 1, "metadata": {}, "source": ""}
    notebook = {
        "cells": [{**cell, "outputs": [output]}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    argv = [sys.executable, "-m", "dsportal.session.sharing.render"]
    done = subprocess.run(
        argv,
        input=json.dumps(notebook),
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        text=True,
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
