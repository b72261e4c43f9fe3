"""Our extension of JupyterLab: its sources (portal/dsportal/lab), its tools, and its build.

Standard library only, as `bootstrap`. The tools come from npm by the package-lock.json there: to
build, esbuild alone; to check, also TypeScript, prettier and the types of JupyterLab. They are
environments of their own, so nothing is installed into the clone.

python deploy/lab_extension.py check | test | watch FOLDER
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bootstrap

SOURCES = bootstrap.REPOSITORY / "portal/dsportal/lab"
PLACE = Path("share/jupyter/labextensions/data-scientist-portal")
"""Where JupyterLab looks, below the environment that it runs from."""
NODE = "/usr/bin/node"


def addition() -> bootstrap.Addition:
    """Return what an environment holds besides its lock file: the built extension."""
    sources = [SOURCES / "build.mjs", SOURCES / "package.json", SOURCES / "package-lock.json"]
    return bootstrap.Addition(
        (
            *sources,
            *sorted((SOURCES / "schema").glob("*.json")),
            *sorted((SOURCES / "src").rglob("*.ts")),
        ),
        lambda folder: build(folder / PLACE),
    )


def build(out: Path) -> None:
    """Build the extension into a folder."""
    with workplace("lab") as folder:
        bootstrap.call_in(folder, [NODE, "build.mjs", out])


def check() -> None:
    """Check types and format."""
    with workplace("lab-dev") as folder:
        programs = folder / "node_modules/.bin"
        bootstrap.call_in(folder, [NODE, programs / "tsc"])
        bootstrap.call_in(folder, [NODE, programs / "prettier", "--check", "."])


def test() -> None:
    """Run the tests of what needs no browser."""
    with workplace("lab") as folder:
        argv: list[str | Path] = [folder / "node_modules/esbuild/bin/esbuild"]
        argv += sorted((folder / "test").glob("*.test.ts"))
        argv += ["--bundle", "--platform=node", "--format=esm", "--out-extension:.js=.mjs"]
        bootstrap.call_in(folder, [*argv, "--log-level=warning", f"--outdir={folder}/built"])
        bootstrap.call_in(folder, [NODE, "--test", folder / "built"])


def watch(folder: Path) -> None:
    """Build it below a folder of ``session.jupyter_path``, and again whenever a source changes.

    A page of JupyterLab that is loaded again has it.
    """
    out = folder / "labextensions" / PLACE.name
    built = 0
    while True:
        built = build_what_changed(out, built)
        time.sleep(0.5)


def build_what_changed(out: Path, before: int) -> int:
    """Build unless the newest source is of ``before`` (nanoseconds since 1970); return its time."""
    newest = max(source.stat().st_mtime_ns for source in addition().sources)
    if newest != before:
        try:
            build(out)
            bootstrap.say(f"built into {out}")
        except bootstrap.DeploymentError as error:
            bootstrap.say(str(error))
    return newest


@contextmanager
def workplace(tools: str) -> Iterator[Path]:
    """Give a copy of the sources, with the tools beside them where node looks for them."""
    installed, _ = bootstrap.environment(tools, bootstrap.CACHE / "environments")
    with tempfile.TemporaryDirectory(prefix="portal-lab-") as name:
        folder = Path(name)
        unwanted = shutil.ignore_patterns("node_modules")
        shutil.copytree(SOURCES, folder, ignore=unwanted, dirs_exist_ok=True)
        (folder / "node_modules").symlink_to(installed / "node_modules")
        yield folder


if __name__ == "__main__":
    try:
        verbs: dict[str, Callable[..., None]] = {"check": check, "test": test, "watch": watch}
        verbs[sys.argv[1]](*map(Path, sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except bootstrap.DeploymentError as error:
        sys.exit(f"portal: {error}")
