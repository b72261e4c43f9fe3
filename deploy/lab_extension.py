"""To work on our extension of JupyterLab (portal/dsportal/lab): check, test, watch.

Standard library only, as `bootstrap`. The tools come from npm by the package-lock.json there: to
build, JupyterLab's own builder; to check, also TypeScript, prettier and the types of JupyterLab.
They are environments of their own, so nothing is installed into the clone. What is deployed is
built with its wheel (`wheels`).

python3 deploy/lab_extension.py check | test | watch FOLDER
"""

import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bootstrap
import wheels

SOURCES = bootstrap.REPOSITORY / wheels.LAB
NAME = "data-scientist-portal"
NODE = "/usr/bin/node"


def check() -> None:
    """Check types and format."""
    with workplace() as folder:
        programs = folder / "node_modules/.bin"
        bootstrap.call_in(folder, [NODE, programs / "tsc"])
        bootstrap.call_in(folder, [NODE, programs / "prettier", "--check", "."])


def test() -> None:
    """Run the tests of what needs no browser."""
    with workplace() as folder:
        argv: list[str | Path] = [folder / "node_modules/esbuild/bin/esbuild"]
        argv += sorted((folder / "test").rglob("*.test.ts"))
        argv += ["--bundle", "--platform=node", "--format=cjs", "--out-extension:.js=.cjs"]
        bootstrap.call_in(folder, [*argv, "--log-level=warning", f"--outdir={folder}/built"])
        bootstrap.call_in(folder, [NODE, "--test", folder / "built"])


def watch(folder: Path) -> None:
    """Build it below a folder of ``session.jupyter_path``, and again whenever a source changes.

    A page of JupyterLab that is loaded again has it.
    """
    out = folder / "labextensions" / NAME
    out.mkdir(parents=True, exist_ok=True)
    with workplace() as lab:
        # The builder looks at the sources where they are edited, and writes to where they are used.
        for path in SOURCES.iterdir():
            if path.is_dir() and path.name != "node_modules":
                shutil.rmtree(lab / path.name)
                (lab / path.name).symlink_to(path)
        (lab.parent / "labextension").symlink_to(out.resolve())
        bootstrap.call_in(lab, wheels.script_of(lab, "watch"))


@contextmanager
def workplace() -> Iterator[Path]:
    """Give a copy of the sources, with the tools beside them where node looks for them."""
    with tempfile.TemporaryDirectory(prefix="portal-lab-") as name:
        wheels.copy_sources(wheels.LAB, Path(name))
        folder = Path(name) / wheels.LAB
        wheels.link_tools(folder, "lab-dev")
        yield folder


if __name__ == "__main__":
    # What is built in is taken away, however a watch ends.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        verbs: dict[str, Callable[..., None]] = {"check": check, "test": test, "watch": watch}
        verbs[sys.argv[1]](*map(Path, sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except bootstrap.DeploymentError as error:
        sys.exit(f"portal: {error}")
