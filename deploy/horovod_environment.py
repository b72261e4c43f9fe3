"""Horovod, in an environment on top of a PyTorch kernel's.

There are no wheels of it, and its last release (2023) asks the compiler for C++14, while PyTorch's
headers are C++20 now. What else it needs is in the kernel's environment. Standard library only, as
`bootstrap`.
"""

import os
import tempfile
from pathlib import Path

import bootstrap

VERSION = "0.28.1"
LOCK = bootstrap.LOCKS / "horovod.txt"
KERNELS = {f"horovod{build}": f"kernel-pytorch{build}" for build in ("", "-cuda", "-cuda12")}
"""Its environments, and the one that each is built for."""
# gloo carries what is said between processes, and between CPUs also the gradients.
_WANTED = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}


def recipe(name: str, root: Path) -> bootstrap.Recipe:
    """Return where it is, or would be, below ROOT, and what makes it, some minutes on 2 cores."""
    kernel = KERNELS[name]
    parts = [Path(__file__), LOCK, bootstrap.lock_file(kernel)]
    final = root / f"{name}-{bootstrap.content_hash(parts)}"

    def make(building: Path) -> None:
        beneath, _ = bootstrap.environment(kernel, root)
        bootstrap.make_empty(building)
        put_on(building, beneath)
        variables = _WANTED | ({} if name == "horovod" else {"HOROVOD_GPU_OPERATIONS": "NCCL"})
        install(building, variables)
        bootstrap.rename_interpreter(building / "bin/horovodrun", building, final)

    return final, make


def put_on(building: Path, beneath: Path) -> None:
    """Let one environment have another's packages, behind its own."""
    (packages,) = beneath.glob("lib/python3*/site-packages")
    line = f"import site; site.addsitedir({str(packages)!r})\n"
    (building / packages.relative_to(beneath) / "_beneath.pth").write_text(line)


def install(building: Path, variables: dict[str, str]) -> None:
    """Compile it for the PyTorch that this environment finds."""
    tools = bootstrap.deploy_environment() / "bin/python"
    pip: list[str | Path] = [tools, "-m", "pip", "--python", building / "bin/python"]
    # Even to tell their name, the sources need setuptools, which the kernel has.
    asked: list[str | Path] = ["-q", "--no-deps", "--no-build-isolation", "--use-pep517"]
    with tempfile.TemporaryDirectory() as work:
        fetched = ["--require-hashes", *bootstrap.brought_along(), "--dest", work, "-r", LOCK]
        bootstrap.call([*pip, "download", *asked, *fetched])
        sources = Path(work) / f"horovod-{VERSION}"
        bootstrap.call(["/usr/bin/tar", "xf", f"{sources}.tar.gz", "-C", work])
        for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
            file = sources / name
            file.write_text(by_pytorchs_standard(file.read_text()))
        parallel = {"MAKEFLAGS": f"-j{os.cpu_count()}"}
        bootstrap.call([*pip, "install", *asked, sources], **variables, **parallel)


def by_pytorchs_standard(rules: str) -> str:
    """Let CMake's rules ask for C++20; raises `DeploymentError` where they do not name C++14."""
    changed = rules.replace("set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD 20)")
    if changed == rules:
        raise bootstrap.DeploymentError(f"the rules of Horovod {VERSION} do not ask for C++14")
    return changed
