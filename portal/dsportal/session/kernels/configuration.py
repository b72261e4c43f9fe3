"""Configuration of ipykernel, by its command line, in whichever environment it is."""

import re
import shlex
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

_UPSTREAM = Path(__file__).parents[1] / "upstream"
_PARTS = ("child_output.py", "pip_magic.py", "debugger.py")
"""For the kernels' Python, and not imported here."""
_ADAPTER = "debug_adapter.py"
"""A program that one of them starts."""
# ipykernel reads one file more than its own; traitlets lets that read others, by whole paths.
_WHOLE = "kernel_configuration.py"
# A word of the command, or a word within one that a shell reads.
_IPYKERNEL = re.compile(r"(?<!\S)ipykernel(?:_launcher|\.kernelapp)?(?!\S)")
_CONNECTION_FILE = "{connection_file}"
# What ipykernel_launcher does, which itself would be looked for in the notebook's folder first:
# that may be a hostile colleague's. psutil is imported before the folder is on the path again, and
# IPython before 8.0.1 (CVE-2022-21699) reads its own files there.
_START = """
import os, sys
sys.path[:] = [place for place in sys.path if place]
from ipykernel import kernelapp, kernelbase
getattr(kernelbase, '_get_psutil', int)()
app = kernelapp.IPKernelApp.instance()
app.config_file_paths = []
find = app.init_profile_dir
def find_elsewhere():
    here = os.getcwd()
    os.chdir('/')
    find()
    os.chdir(here)
app.init_profile_dir = find_elsewhere
kernelapp.launch_new_instance()
"""
_IRKERNEL = "IRkernel::main()"
_WITHOUT_DATA = "--no-restore-data"


def install(folder: Path) -> Path:
    """Put the file of configuration where images see it as well; return where it is."""
    for name in (*_PARTS, _ADAPTER):
        shutil.copyfile(_UPSTREAM / name, folder / name)
    file = folder / _WHOLE
    file.write_text(
        "".join(f"load_subconfig({str(folder / name)!r})\n" for name in _PARTS), encoding="utf-8"
    )
    return file


def without_folder(argv: Sequence[str]) -> list[str]:
    """Have a kernel start with nothing of the folder that it is started in.

    Not by ``python -P``, with which notebooks would find none of the modules beside them.

    >>> without_folder(["python", "-m", "ipykernel_launcher", "-f", "x"])[1] == "-c"
    True
    >>> without_folder(["env", "R", "--slave", "-e", "IRkernel::main()", "--args", "x"])[2:4]
    ['--slave', '--no-restore-data']
    """
    if _IRKERNEL in argv and _WITHOUT_DATA not in argv:
        # Not after the first word, which may be a program that starts R.
        at = argv.index(_IRKERNEL) - 1
        if at > 0 and argv[at] == "-e":
            return [*argv[:at], _WITHOUT_DATA, *argv[at:]]
    for at, pair in enumerate(pairwise(argv)):
        if pair[0] == "-m" and _IPYKERNEL.fullmatch(pair[1]):
            return [*argv[:at], "-c", _START, *argv[at + 2 :]]
    return list(argv)


def with_configuration(argv: Sequence[str], file: str) -> list[str]:
    """Have ipykernel read one file of configuration more; other kernels stay as they are.

    Somebody's own spec may hand ipykernel to a shell in one word, or have a file of its own,
    beside which there is no other.

    >>> with_configuration(["python", "-m", "ipykernel", "-f", "{connection_file}"], "/c.py")
    ['python', '-m', 'ipykernel', '-f', '{connection_file}', '--config=/c.py']
    >>> with_configuration(["bash", "-c", "python -m ipykernel -f {connection_file}"], "/c.py")
    ['bash', '-c', 'python -m ipykernel -f {connection_file} --config=/c.py']
    """
    if any(word.startswith("--config") for word in argv):
        return list(argv)
    option = f"--config={shlex.quote(file)}"
    found = [_IPYKERNEL.search(word) is not None for word in argv]
    lines = [is_it and _CONNECTION_FILE in word for is_it, word in zip(found, argv, strict=True)]
    if any(lines):
        return [
            word.replace(_CONNECTION_FILE, f"{_CONNECTION_FILE} {option}") if is_line else word
            for word, is_line in zip(argv, lines, strict=True)
        ]
    return [*argv, f"--config={file}"] if any(found) else list(argv)
