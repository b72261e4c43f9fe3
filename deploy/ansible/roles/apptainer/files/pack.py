"""Pack Debian sid's Apptainer for a folder of a Debian 12, which has none; print where it is.

Argument: the folder below which it will be. Runs on the machine that deploys (a Debian or Ubuntu
that reaches Debian's archive). Nothing is installed here or there: the packages are fetched by an
apt with folders of its own, which checks their signatures, and unpacked. The programs need a newer
C library than Debian 12 has, so they are told to use the one beside them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

CACHE = Path(os.environ.get("PORTAL_CACHE", "/var/cache/data-scientist-portal"), "apptainer")
KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
SOURCES = f"""\
deb [signed-by={KEY}] http://deb.debian.org/debian sid main
deb [signed-by={KEY}] http://deb.debian.org/debian bookworm main
"""
PACKAGES = ("apptainer/sid", "libc6/sid", "libseccomp2/sid", "libsqlite3-0/sid")
# Runs here, so it is of an old release.
TOOL = "patchelf/bookworm"
LIBRARIES = (
    "ld-linux-x86-64.so.2",
    *(f"lib{name}" for name in ("c.so.6", "m.so.6", "pthread.so.0", "dl.so.2", "rt.so.1")),
    "libresolv.so.2",
    "libseccomp.so.*",
    "libsqlite3.so.*",
)
TRIPLET = "usr/lib/x86_64-linux-gnu"
PROGRAMS = ("usr/bin/apptainer", f"{TRIPLET}/apptainer/bin/starter")


def call(*argv: str | Path, folder: Path | None = None) -> None:
    """Run a program, its words going to stderr; raises `CalledProcessError`."""
    words = [str(word) for word in argv]
    subprocess.run(words, cwd=folder, stdout=sys.stderr, check=True, timeout=300)


def download(apt: Path) -> Path:
    """Fetch the packages with an apt of their own, and return their folder."""
    packages = apt / "packages"
    for folder in (apt / "state/lists/partial", apt / "cache/archives/partial", packages):
        folder.mkdir(parents=True)
    (apt / "sources.list").write_text(SOURCES)
    options = {
        "APT::Architecture": "amd64",
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
    call(*get, "update")
    call(*get, "download", *PACKAGES, TOOL, folder=packages)
    return packages


def arrange(unpacked: Path, tree: Path) -> None:
    """Take what Apptainer needs of the unpacked packages, each file where it looks for it."""
    (tree / "usr/lib").mkdir(parents=True)
    shutil.copytree(unpacked / "usr/bin", tree / "usr/bin", symlinks=True)
    shutil.copytree(unpacked / f"{TRIPLET}/apptainer", tree / f"{TRIPLET}/apptainer", symlinks=True)
    shutil.copytree(unpacked / "etc", tree / "usr/etc", symlinks=True)
    (tree / "usr/lib/etc").symlink_to("../etc")
    (tree / "usr/lib/var/lib/apptainer/mnt/session").mkdir(parents=True)
    # The name that users' scripts know.
    (tree / "usr/bin/singularity").symlink_to("apptainer")
    (tree / "libs").mkdir()
    for pattern in LIBRARIES:
        for library in (unpacked / TRIPLET).glob(pattern):
            shutil.copy2(library, tree / "libs", follow_symlinks=False)


def patch(patchelf: Path, tree: Path, prefix: Path) -> None:
    """Let the programs use the libraries that will be beside them."""
    libraries = prefix / "libs"
    loader = ("--set-interpreter", libraries / LIBRARIES[0])
    for program in PROGRAMS:
        call(patchelf, *loader, "--force-rpath", "--set-rpath", libraries, tree / program)


def build(folder: Path, prefix: Path) -> Path:
    """Make the tree in ``folder`` and return it."""
    unpacked, tools, tree = (folder / name for name in ("unpacked", "tools", "tree"))
    for package in sorted(download(folder / "apt").glob("*.deb")):
        is_tool = package.name.startswith("patchelf_")
        call("/usr/bin/dpkg", "-x", package, tools if is_tool else unpacked)
    arrange(unpacked, tree)
    patch(tools / "usr/bin/patchelf", tree, prefix)
    return tree


def main() -> None:
    """Write the archive under the name of what it is made of, once."""
    os.umask(0o022)
    prefix = Path(sys.argv[1])
    made_of = hashlib.sha256(Path(__file__).read_bytes() + bytes(prefix)).hexdigest()[:12]
    final = CACHE / f"{made_of}.tar"
    CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.exists():
            building = CACHE / ".building"
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            tree = build(building, prefix)
            with tarfile.open(building / "tar", "w") as archive:
                archive.add(tree, ".")
            (building / "tar").rename(final)
            shutil.rmtree(building)
    print(final)


main()
