"""Images of one's own, built from a notebook: as oneself, without a privilege on the node.

    from building import build, run

    build("own.def", "~/images/own.sif", base="~/isilon/images/base.sif")
    run("~/images/own.sif", "hello")

Needs nothing but Python and the module `apptainer`.
"""

import os
import pwd
import subprocess
import tempfile
from pathlib import Path

# Loads the module where it runs, so that the notebook's own environment stays as it is.
_WITH_APPTAINER = 'module load apptainer && exec apptainer "$@"'
# A ninth of the time of mksquashfs's own choice, gzip, for a smaller file. Without the limit it
# takes a quarter of the node's memory, not of the job's.
PACKING = "-comp zstd -Xcompression-level 6 -mem 256M"

SUBUID = Path("/etc/subuid")


class BuildError(Exception):
    """There is no new image; the message says why, or Apptainer has said so above."""


def apptainer(*arguments: str, **environment: str) -> None:
    """Run apptainer, and print what it says as it says it."""
    argv = ["/bin/bash", "-c", _WITH_APPTAINER, "bash", *arguments]
    process = subprocess.Popen(
        argv,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",  # what %post runs may write any bytes
    )
    with process:
        try:
            for line in process.stdout or ():
                print(line, end="", flush=True)
        except BaseException:  # the notebook's stop button, too
            process.terminate()
            raise
    if process.returncode != 0:
        raise BuildError(f"apptainer {arguments[0]} ended with {process.returncode}")


def has_numbers(text: str, user: pwd.struct_passwd) -> bool:
    """Say whether subuid(5) gives a user numbers for the users inside images."""
    owners = {line.partition(":")[0].strip() for line in text.splitlines()}
    return not owners.isdisjoint({user.pw_name, str(user.pw_uid)})


def build(definition: str, image: str, *, base: str, replace: bool = False) -> Path:
    """Build the image, and return its file; half an image is never seen there."""
    source, final, first = (Path(path).expanduser() for path in (definition, image, base))
    if not source.exists():
        raise BuildError(f"{source} does not exist")
    if not first.exists():
        raise BuildError(f"{first} does not exist: base names the image to start from")
    if not SUBUID.exists() or not has_numbers(SUBUID.read_text(), pwd.getpwuid(os.getuid())):
        raise BuildError(f"{SUBUID} on this node has no user IDs for you; ask the administrators")
    if final.exists() and not replace:
        raise BuildError(f"{final} already exists; set replace = True, or choose another name")
    final.parent.mkdir(parents=True, exist_ok=True)
    processors = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix=".building-", dir=final.parent) as folder:
        half = Path(folder, final.name)
        apptainer(
            "build",
            "--fakeroot",
            f"--build-arg=base={first}",
            f"--mksquashfs-args={PACKING} -processors {processors}",
            str(half),
            str(source),
        )
        half.rename(final)
    return final


def run(image: str, *command: str) -> None:
    """Run a command in an image, as kernels are run: its own environment, not the notebook's."""
    apptainer("--quiet", "exec", "--cleanenv", str(Path(image).expanduser()), *command)
