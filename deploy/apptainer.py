#!/usr/bin/python3
"""Pack Debian sid's Apptainer for a folder of a Debian, which has none; print where it is.

deploy/apptainer.py [--newest] FOLDER [ARCHIVE]

FOLDER is where it will be, ARCHIVE a mirror of Debian's. Runs on the machine that deploys. Nothing
is installed here or there: packages are fetched and unpacked. The programs need a newer C library
than Debian 12 has, so they are told to use the one beside them.

The packages are those of ``deploy/locks/apptainer.sha256``: from a release's packages, Debian's
archive, or snapshot.debian.org, which keeps what the archive has replaced. Where none of them has
one, that is an error; with ``--newest`` the archive's present version is taken, by apt, which
checks its signature, and this is said.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import bootstrap

LOCK = bootstrap.LOCKS / "apptainer.sha256"
ARCHIVE = "http://deb.debian.org/debian"
SNAPSHOT = "http://snapshot.debian.org/archive/debian"
PACKED = bootstrap.CACHE / "apptainer"
BROUGHT_ALONG = bootstrap.PACKAGES / "debian"
KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
# The tool runs here, so it is of an old release.
SUITES = {
    "apptainer": "sid",
    "libc6": "sid",
    "libseccomp2": "sid",
    "libsqlite3-0": "sid",
    "patchelf": "bookworm",
}
LIBRARIES = (
    "ld-linux-x86-64.so.2",
    *(f"lib{name}" for name in ("c.so.6", "m.so.6", "pthread.so.0", "dl.so.2", "rt.so.1")),
    "libresolv.so.2",
    "libseccomp.so.*",
    "libsqlite3.so.*",
)
TRIPLET = "usr/lib/x86_64-linux-gnu"
PROGRAMS = ("usr/bin/apptainer", f"{TRIPLET}/apptainer/bin/starter")
# apt's own user cannot write into a folder of ours.
AS_ROOT = ("-oAPT::Sandbox::User=root", "-oAcquire::Retries=3")
HEADER = """\
# Made by `deploy/lock apptainer`; change nothing by hand. Debian's archive at {moment}.
"""


@dataclass(frozen=True)
class Package:
    """A file of Debian's archive."""

    sha256: str
    path: str
    """Below the archive's address."""

    @property
    def file(self) -> str:
        """Its own name, such as ``apptainer_1.4.5-2_amd64.deb``."""
        return self.path.rpartition("/")[2]

    @property
    def name(self) -> str:
        """Of which package it is."""
        return self.file.partition("_")[0]


def read_lock(text: str) -> tuple[str, list[Package]]:
    """Return when the lock was made, as snapshot.debian.org writes it, and the packages."""
    first, *lines = text.splitlines()
    moment = first.rstrip(".").rpartition(" ")[2]
    return moment, [Package(*line.split()) for line in lines]


def fetch(folder: Path, archive: str = ARCHIVE, *, takes_newest: bool = False) -> list[Path]:
    """Fetch the packages of the lock into a folder.

    ``takes_newest``: what the archive has today, in the place of one that nobody has any more.

    Raises:
        bootstrap.DeploymentError: nobody has one, and no other is taken.

    """
    moment, packages = read_lock(LOCK.read_text())
    archives = (archive, f"{SNAPSHOT}/{moment}")
    files = []
    for package in packages:
        file = _locked(package, folder, archives)
        if file is None and not takes_newest:
            raise bootstrap.DeploymentError(
                f"neither {archive} nor {SNAPSHOT} gives {package.file}. If both can be reached, "
                "run `deploy/lock apptainer`, and try what it takes. Else bring the packages of a "
                "release, leave the group apptainer empty, or set apptainer_takes_newest, which "
                "takes an untried version"
            )
        files.append(file or _newest(package, folder, archive))
    return files


def _locked(package: Package, folder: Path, archives: tuple[str, str]) -> Path | None:
    """Return a package of the lock, or None if nobody has it any more."""
    file = folder / package.file
    if bootstrap.PACKAGES.is_dir():
        shutil.copyfile(_brought_along(package), file)
        return file
    return file if any(_is_downloaded(package, each, file) for each in archives) else None


def _brought_along(package: Package) -> Path:
    file = BROUGHT_ALONG / package.file
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != package.sha256:
        raise bootstrap.DeploymentError(
            f"{file} is not there, or not the one of {LOCK}: take the packages of this "
            "release, or leave the group apptainer empty"
        )
    return file


def _is_downloaded(package: Package, archive: str, file: Path) -> bool:
    """Fetch it with apt's own program, which compares the hash; say whether that went well."""
    argv = ["/usr/lib/apt/apt-helper", *AS_ROOT, "download-file", f"{archive}/{package.path}"]
    try:
        bootstrap.call([*argv, file, f"SHA256:{package.sha256}"])
    except bootstrap.DeploymentError:
        return False
    return True


def _newest(package: Package, folder: Path, archive: str) -> Path:
    """Fetch what the archive has today, and say so; nothing else is left in the folder."""
    name = package.name
    with tempfile.TemporaryDirectory() as work:
        apt = Apt(Path(work), archive)
        apt.update()
        bootstrap.call_in(folder, [*apt.get(), "download", f"{name}/{SUITES[name]}"])
    (file,) = folder.glob(f"{name}_*.deb")
    bootstrap.say(f"nobody has {package.file} any more: {file.name} was taken, which is untried")
    return file


@dataclass(frozen=True)
class Apt:
    """An apt with folders of its own, which knows no archive but Debian's."""

    folder: Path
    archive: str

    def update(self) -> None:
        """Make its folders, and fetch the lists of packages."""
        for each in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / each).mkdir(parents=True, exist_ok=True)
        suites = dict.fromkeys(SUITES.values())
        lines = [f"deb [signed-by={KEY}] {self.archive} {suite} main\n" for suite in suites]
        (self.folder / "sources.list").write_text("".join(lines))
        bootstrap.call([*self.get(), "update"])

    def get(self) -> list[str]:
        """Say how to call its apt-get."""
        options = {
            "APT::Architecture": "amd64",
            "Dir::State": self.folder / "state",
            "Dir::State::Status": "/dev/null",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc::SourceList": self.folder / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
        }
        named = [f"-o{name}={value}" for name, value in options.items()]
        return ["/usr/bin/apt-get", "-q", *AS_ROOT, *named]


def lock(work: Path) -> None:
    """Write the lock: what Debian's archive has now."""
    apt = Apt(work, ARCHIVE)
    apt.update()
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    wanted = [f"{name}/{suite}" for name, suite in SUITES.items()]
    asked = [*apt.get(), "download", "--print-uris", *wanted]
    done = subprocess.run(asked, cwd=work, stdout=subprocess.PIPE, text=True, check=True)
    LOCK.write_text(HEADER.format(moment=moment) + "".join(map(locked, done.stdout.splitlines())))


def locked(printed: str) -> str:
    """Return a line of the lock for one that apt-get has printed: 'URI' FILE SIZE SHA256:HASH."""
    address, _, _, digest = printed.split()
    path = unquote(urlsplit(address.strip("'")).path)
    return f"{digest.removeprefix('SHA256:')}  {path[path.index('pool/') :]}\n"


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
        rpath = ("--force-rpath", "--set-rpath", libraries)
        bootstrap.call([patchelf, *loader, *rpath, tree / program])


def build(folder: Path, prefix: Path, archive: str, *, takes_newest: bool) -> Path:
    """Make the tree in ``folder`` and return it."""
    unpacked, tools, tree, packages = (
        folder / name for name in ("unpacked", "tools", "tree", "packages")
    )
    packages.mkdir()
    for package in fetch(packages, archive, takes_newest=takes_newest):
        is_tool = package.name.startswith("patchelf_")
        bootstrap.call(["/usr/bin/dpkg", "-x", package, tools if is_tool else unpacked])
    arrange(unpacked, tree)
    patch(tools / "usr/bin/patchelf", tree, prefix)
    return tree


def main() -> int:
    """Write the archive under the name of what it is made of, once."""
    os.umask(0o022)
    takes_newest = "--newest" in sys.argv
    prefix, archive, *_ = (*(each for each in sys.argv[1:] if each != "--newest"), ARCHIVE)
    # What may be newer than the lock is never taken for what it names.
    made_of = prefix.encode() + (b"\0newest" if takes_newest else b"")
    name = bootstrap.content_hash([Path(__file__), LOCK], made_of)
    final = PACKED / f"{name}.tar"
    with bootstrap.only_one(PACKED, "packing"):
        if not final.exists():
            building = PACKED / ".building"
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            tree = build(building, Path(prefix), archive, takes_newest=takes_newest)
            with tarfile.open(building / "tar", "w") as opened:
                opened.add(tree, ".")
            (building / "tar").rename(final)
            shutil.rmtree(building)
    print(final)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except bootstrap.DeploymentError as error:
        sys.exit(f"portal: {error}")
