"""Python 2.7 with its last ipykernel, beside a system that has none any more.

The interpreter is Debian 11's, unpacked and not installed: nothing of the machine changes but the
one folder. It serves the test of a kernel for it, and shows a site how to come by one.
"""

from pathlib import Path

import bootstrap

from tests.building import call, once

_HERE = Path(__file__).parent
_PACKAGES = (
    "python2.7-minimal",
    "libpython2.7-minimal",
    "libpython2.7-stdlib",
    "libffi7",
    "libssl1.1",
)
_KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SOURCES = f"""\
deb [signed-by={_KEY}] http://deb.debian.org/debian bullseye main
deb [signed-by={_KEY}] http://deb.debian.org/debian-security bullseye-security main
"""


def variables(root: Path) -> dict[str, str]:
    """Return what the interpreter below ``root`` needs to find its libraries and modules."""
    return {
        "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu"),
        "PYTHONHOME": str(root / "usr"),
    }


def unpack(root: Path) -> None:
    """Make ``root`` unless it is there already; readable by everybody, in about 25 seconds."""
    parts = [Path(__file__), _HERE / "pip.txt", _HERE / "kernel.txt"]

    def make(building: Path) -> None:
        _unpack_interpreter(building / "root", building / "apt")
        _install_kernel(building / "root", building / "pip")

    once(root, b"".join(part.read_bytes() for part in parts), make)


def _unpack_interpreter(root: Path, apt: Path) -> None:
    """Fetch Debian 11's packages with an apt of their own, which checks their signatures."""
    for folder in ("state/lists/partial", "cache/archives/partial", "packages"):
        (apt / folder).mkdir(parents=True)
    (apt / "sources.list").write_text(_SOURCES)
    options = {
        "Dir::State": apt / "state",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": apt / "cache",
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        # apt's own user cannot write into a folder of ours.
        "APT::Sandbox::User": "root",
        "Acquire::Retries": 3,
    }
    get = ["/usr/bin/apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]
    _call([*get, "update"], apt)
    _call([*get, "download", *_PACKAGES], apt / "packages")
    for package in sorted((apt / "packages").glob("*.deb")):
        _call(["/usr/bin/dpkg", "-x", str(package), str(root)], apt)


def _install_kernel(root: Path, tools: Path) -> None:
    """Install ipykernel with the pip of its time, which runs in that very Python 2."""
    python3 = str(bootstrap.deploy_environment() / "bin/python")
    install = ["-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "--no-cache-dir"]
    _call([python3, *install, "--target", str(tools), "-r", str(_HERE / "pip.txt")], root)
    target = str(root / "usr/lib/python2.7/dist-packages")
    # tornado and scandir are to be had as sources only, and do without their parts in C.
    argv = [*install, "--no-build-isolation", "--target", target, "-r", str(_HERE / "kernel.txt")]
    environment = variables(root) | {"PYTHONPATH": str(tools)}
    _call([str(root / "usr/bin/python2.7"), *argv], root, **environment)


def _call(argv: list[str], folder: Path, **extra: str) -> None:
    call(argv, seconds=300, folder=folder, **extra)
