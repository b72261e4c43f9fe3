"""A tar file with which a machine without network installs the portal.

In it: NAME/, the sources, and packages/, what their environments are made of, for
`bootstrap.PACKAGES`. Debian's own packages are not in it. Standard library only, as `bootstrap`.
"""

import json
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import apptainer
import bootstrap

PYTHON_LOCKS = ("deploy", "hub", "session", "tensorboard", "docs")
"""Whose packages are always in it. Kernels take gigabytes, and a site may have its own."""
JAVASCRIPT = ("proxy", "lab")
INSTALLED = ("hub", "session", "tensorboard", "proxy")
"""The environments that every site has."""


def pack(archive: Path, name: str, locks: Sequence[str], work: Path) -> None:
    """Write ARCHIVE: the sources of this commit, and the packages of LOCKS and of JavaScript."""
    sources = work / "sources.tar"
    archived = ["archive", "--format=tar", f"--prefix={name}/", f"--output={sources}", "HEAD"]
    bootstrap.call_in(bootstrap.REPOSITORY, [*git(bootstrap.REPOSITORY), *archived])
    unpack(sources, work)
    for lock in locks:
        bootstrap.say(f"fetching the packages of {lock}")
        fetch_python(lock, work / "packages/python")
    for lock in JAVASCRIPT:
        bootstrap.say(f"fetching the packages of {lock}")
        fetch_javascript(lock, work / "packages/npm", work / "npm")
    bootstrap.say("fetching Apptainer")
    (work / "packages/debian").mkdir()
    apptainer.fetch(work / "packages/debian")
    with tarfile.open(archive, "w") as opened:
        for part in (name, "packages"):
            opened.add(work / part, part, filter=owned_by_root)


def git(repository: Path) -> list[str]:
    """Begin a command of git's for a checkout that may be another user's."""
    return ["/usr/bin/git", "-c", f"safe.directory={repository}"]


def fetch_python(lock: str, folder: Path) -> None:
    """Fetch what pip would install on a machine like this one; the lock's hashes are checked."""
    pip: list[str | Path] = [bootstrap.deploy_environment() / "bin/python", "-m", "pip"]
    pip += ["--disable-pip-version-check", "download", "--quiet", "--dest", folder, "--no-deps"]
    pip += ["--require-hashes", "--only-binary=:all:", "-r", bootstrap.lock_file(lock)]
    index = bootstrap.INDEXES.get(lock)
    bootstrap.call([*pip, f"--extra-index-url={index}"] if index else pip)


def fetch_javascript(lock: str, cache: Path, work: Path) -> None:
    """Fill a cache of npm's, by installing once with it."""
    folder, options = bootstrap.NPM[lock]
    place = work / lock
    place.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(folder / file, place / file)
    npm: list[str | Path] = ["/usr/bin/npm", "ci", "--prefix", place, "--cache", cache]
    npm += ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *options]
    bootstrap.call(npm)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar file of our own making, by the program that an administrator uses."""
    folder.mkdir(parents=True, exist_ok=True)
    bootstrap.call(["/usr/bin/tar", "--extract", "--file", archive, "--directory", folder])


def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave who made it out of it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def install(archive: Path, name: str, work: Path) -> dict[str, Path]:
    """Make the environments from nothing but ARCHIVE, without network; return where they are."""
    bootstrap.say("installing without network")
    cache = work / "cache"
    cache.mkdir(parents=True)
    unpack(archive, work)
    (work / "packages").rename(cache / "packages")
    argv = ["/usr/bin/unshare", "--net", "--", f"{work / name}/deploy/venv"]
    argv += ["--root", str(work / "environments"), "--json", *INSTALLED]
    done = subprocess.run(
        argv,
        env=bootstrap.child_environment(PORTAL_CACHE=str(cache)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise bootstrap.DeploymentError(f"{archive} does not install what it should")
    made = json.loads(done.stdout)["environments"]
    return {each: Path(path) for each, path in made.items()}
