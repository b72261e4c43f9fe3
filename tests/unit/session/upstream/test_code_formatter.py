"""In a process of its own, since the list of formatters is a module's."""

import json
import os
import subprocess
import sys

from tests.checkout import PYTHONPATH

CODE = """
import json, subprocess
from unittest.mock import Mock

def refuse(*argv, **options):
    raise AssertionError(f"{argv} is run while pages wait")

subprocess.run = refuse
from dsportal.session.upstream import code_formatter
from jupyterlab_code_formatter.formatters import SERVER_FORMATTERS

server = Mock(web_app=Mock(settings={"base_url": "/"}))
code_formatter._load_jupyter_server_extension(server)
print(json.dumps([name for name, one in SERVER_FORMATTERS.items() if one.importable]))
"""


def test_to_list_the_formatters_runs_no_program() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        check=True,
    )
    listed = json.loads(done.stdout)
    assert {"ruff", "ruffformat"} <= {*listed}
    assert not {"formatR", "styler"} & {*listed}
