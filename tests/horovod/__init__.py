"""Horovod for the PyTorch kernel, built into a folder beside it.

There are no wheels of it, and its last release (2023) asks the compiler for C++14, while PyTorch's
headers are C++20 now. It serves the test of a training that uses it, and shows a site how to come
by one.
"""

import os
import subprocess
from pathlib import Path

import bootstrap

from tests.building import call, once

VERSION = "0.28.1"
_HERE = Path(__file__).parent
_STANDARD = "CMAKE_CXX_STANDARD"
# gloo carries what is said between processes, and between CPUs also the gradients.
_WANTED = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}


def build(root: Path, python: Path) -> None:
    """Make ``root`` for this interpreter's PyTorch, unless it is there; some minutes on 2 cores.

    With ``PYTHONPATH=root`` the interpreter has Horovod. For GPUs set HOROVOD_GPU_OPERATIONS=NCCL.
    """
    parts = [Path(__file__), _HERE / "packages.txt", _HERE / "horovod.txt"]
    # Not the interpreter's folder: another package there is no reason to compile it anew.
    content = b"".join(part.read_bytes() for part in parts) + _made_for(python)
    once(root, content, lambda building: _compile(building, python))


def _made_for(python: Path) -> bytes:
    asked = (
        "import platform, importlib.metadata as metadata; "
        "print(platform.python_version(), metadata.version('torch'))"
    )
    return subprocess.run([python, "-Ic", asked], check=True, capture_output=True).stdout


def _compile(building: Path, python: Path) -> None:
    target = ["--python", str(python), "install", "-q", "--no-deps", "--target"]
    locked = ["--require-hashes", "-r", str(_HERE / "packages.txt")]
    _pip([*target, str(building / "root"), *locked])
    sources = _sources(building, python)
    variables = {**_WANTED, "MAKEFLAGS": f"-j{os.cpu_count()}"}
    variables["PYTHONPATH"] = str(building / "root")
    own = ["--no-build-isolation", "--use-pep517", str(sources)]
    _pip([*target, str(building / "root"), *own], **variables)


def modulefile(root: Path, pytorch: str = "pytorch") -> str:
    """Return a modulefile that brings PyTorch with this Horovod."""
    return f"""#%Module1.0
module-whatis "Horovod {VERSION}, for PyTorch"
module load {pytorch}
prepend-path PYTHONPATH {root}
"""


def _sources(folder: Path, python: Path) -> Path:
    """Fetch the sources, and let them be compiled by the standard of PyTorch's headers."""
    fetched = ["--python", str(python), "download", "-q", "--no-deps", "--dest", str(folder)]
    # pip asks the sources for their names, which needs the kernel's setuptools.
    asked = ["--no-build-isolation", "--use-pep517"]
    _pip([*fetched, *asked, "--require-hashes", "-r", str(_HERE / "horovod.txt")])
    bootstrap.call(["/usr/bin/tar", "xf", folder / f"horovod-{VERSION}.tar.gz", "-C", folder])
    sources = folder / f"horovod-{VERSION}"
    for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
        text = (sources / name).read_text()
        changed = text.replace(f"set({_STANDARD} 14)", f"set({_STANDARD} 20)")
        if changed == text:
            raise RuntimeError(f"{name} of Horovod {VERSION} does not ask for C++14")
        (sources / name).write_text(changed)
    return sources


def _pip(words: list[str], **variables: str) -> None:
    pip = [str(bootstrap.deploy_environment() / "bin/python"), "-m", "pip", *words]
    # Tests that watch the clock run beside the compiler; it must come to its end beside them, too.
    call(["/usr/bin/nice", "-n", "5", *pip], seconds=2400, folder=None, **variables)
