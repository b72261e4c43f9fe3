import json

from dsportal.session.sharing.render import page


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
    assert "Digits</" in html or "Digits<" in html
    assert "98.9 %" in html
    # Nothing is fetched from elsewhere.
    assert 'src="http' not in html
