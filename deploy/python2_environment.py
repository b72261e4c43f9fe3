"""Python 2.7 with its last ipykernel, for systems that have none any more.

The interpreter is Debian 11's, unpacked and not installed: the machine's own packages stay as they
are. Standard library only, as `bootstrap`.
"""

import shutil
import tempfile
from pathlib import Path

import bootstrap

NAME = "python2"
_LOCKS = {part: bootstrap.LOCKS / f"{part}.txt" for part in ("python2-pip", NAME)}
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


def recipe(root: Path) -> bootstrap.Recipe:
    """Return where it is, or would be, below ROOT, and what makes it in about 25 seconds."""
    parts = [Path(__file__), *_LOCKS.values()]
    return root / f"{NAME}-{bootstrap.content_hash(parts)}", make


def make(building: Path) -> None:
    """Unpack it, and install ipykernel with the pip of its time, which runs in that very Python."""
    with tempfile.TemporaryDirectory() as work:
        unpack(Path(work))
        # From its own place it finds its modules without being told.
        shutil.move(Path(work) / "root/usr", building)
    (building / "bin/python").symlink_to("python2.7")
    packages = building / "lib/python2.7/dist-packages"
    (libraries,) = building.glob("lib/*-linux-gnu")
    python3 = bootstrap.deploy_environment() / "bin/python"
    install: list[str | Path] = ["-m", "pip", "install", "-q", "--no-deps", "--require-hashes"]
    install += ["--no-cache-dir", *bootstrap.brought_along(), "--target", packages]
    bootstrap.call([python3, *install, "-r", _LOCKS["python2-pip"]])
    # tornado and scandir are to be had as sources only, and do without their parts in C.
    argv = [building / "bin/python", *install, "--no-build-isolation", "-r", _LOCKS[NAME]]
    bootstrap.call(argv, LD_LIBRARY_PATH=str(libraries))


def unpack(work: Path) -> None:
    """Fetch Debian 11's packages with an apt of their own, which checks their signatures."""
    for folder in ("state/lists/partial", "cache/archives/partial", "packages"):
        (work / folder).mkdir(parents=True)
    (work / "sources.list").write_text(_SOURCES)
    options = {
        "Dir::State": work / "state",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": work / "cache",
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        # apt's own user cannot write into a folder of ours.
        "APT::Sandbox::User": "root",
        "Acquire::Retries": 3,
        # Lists of a release that ended are not renewed; they stay signed.
        "Acquire::Check-Valid-Until": "false",
    }
    get = ["/usr/bin/apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]
    bootstrap.call([*get, "update"])
    bootstrap.call_in(work / "packages", [*get, "download", *_PACKAGES])
    for package in sorted((work / "packages").glob("*.deb")):
        bootstrap.call(["/usr/bin/dpkg", "-x", package, work / "root"])
