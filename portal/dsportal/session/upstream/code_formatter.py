"""The server part of jupyterlab-code-formatter, without the formatters of R.

To list its formatters, which each page of JupyterLab asks for, it runs Rscript for each of R's and
waits (``subprocess.run``), so that the whole session stands still, kernels' messages too. And it
lists them whatever Rscript says, though none can work: they need rpy2 in the session's environment.

Tried with jupyterlab_code_formatter 3.1.0.
"""

from typing import Any

import jupyterlab_code_formatter
from jupyterlab_code_formatter.formatters import SERVER_FORMATTERS, RFormatter


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    for name in [name for name, one in SERVER_FORMATTERS.items() if isinstance(one, RFormatter)]:
        del SERVER_FORMATTERS[name]
    jupyterlab_code_formatter._load_jupyter_server_extension(server)
