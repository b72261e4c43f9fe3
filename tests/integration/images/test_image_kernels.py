"""Kernels in images: what they see, what they are not told, and images that are none."""

import json
import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import images
from tests.instance import USERS, Instance
from tests.network import sockets
from tests.processes import running
from tests.visitor import Visitor
from tests.waiting import until

USER, ANOTHER = USERS[0], USERS[1]
SITES, OWN = "image-tools-python", "own-mine.sif-python"
IN_R = "own-r-r"
HOSTILE = "own-hostile-python"
LOOK = """\
import json, os, sys
print(json.dumps({
    "answer": 6 * 7, "uid": os.getuid(), "cwd": os.getcwd(), "home": os.path.expanduser("~"),
    "python": sys.version_info[:2], "packages": [path for path in sys.path if ".local" in path],
    "has_apt": os.path.exists("/usr/share/doc/python3-ipykernel"), "env": dict(os.environ),
    "nas": sorted(os.listdir("isilon")), "devices": os.path.exists("/dev/nvidiactl"),
}))
"""
# What a hostile image does wherever its environment is read.
EVIL = """\
export PATH=/evil:$PATH PYTHONPATH=/evil LD_PRELOAD_OF_IMAGE=/evil.so
echo "portal-image kernel /bin/evil 9.9"
echo "portal-image kernel R 9.9"
/usr/bin/touch "$HOME/evil-home" "/tmp/evil-tmp-$(/usr/bin/id -u)" 2>/dev/null
"""


@pytest.fixture(scope="module")
def tools(portal: Instance) -> Iterator[Path]:
    """The image of the settings, where they say that it is."""
    path = Path(portal.settings["containers"]["images"]["tools"]["path"])
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(images.kernel_image())
    yield path
    path.unlink()


@pytest.fixture(scope="module")
def home(portal: Instance, tools: Path) -> Iterator[Path]:
    """A home with images of the user's own, good and bad."""
    account = pwd.getpwnam(USER)
    folder = Path(account.pw_dir, "images")
    folder.mkdir(exist_ok=True)
    shutil.copy(images.kernel_image(), folder / "mine.sif")
    with images.kernel_image().open("rb") as image:
        (folder / "short.sif").write_bytes(image.read(2**20))
    broken = bytearray((folder / "short.sif").read_bytes())
    (folder / "broken.sif").write_bytes(broken)
    os.truncate(folder / "broken.sif", images.kernel_image().stat().st_size)
    (folder / "text.sif").write_text("From: debian\n")
    (folder / "link.sif").symlink_to(Path(pwd.getpwnam(ANOTHER).pw_dir, "secret.sif"))
    for path in (folder, *folder.iterdir()):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    _hostile(folder / "hostile")
    shutil.copytree(images.r_folder(), folder / "r", symlinks=True, copy_function=_linked)
    yield folder.parent
    shutil.rmtree(folder)
    shutil.rmtree(folder.parent / ".cache/data-scientist-portal")


def _hostile(image: Path) -> None:
    shutil.copytree(images.kernel_folder(), image, symlinks=True, copy_function=_linked)
    variables = image / ".singularity.d/env"
    variables.mkdir(parents=True)
    for name in ("10-docker2singularity.sh", "90-environment.sh", "99-evil.sh"):
        (variables / name).write_text(EVIL)
    (image / ".singularity.d/runscript").write_text(f"#!/bin/sh\n{EVIL}")


def _linked(source: str, target: str) -> None:
    os.link(source, target, follow_symlinks=False)


@pytest.fixture(scope="module")
def user(portal: Instance, home: Path) -> Iterator[Visitor]:
    """The user of that home, with a session that has a GPU."""
    visitor = Visitor(portal, USER)
    visitor.log_in().raise_for_status()
    try:
        visitor.leave()
        visitor.start_and_wait(gpus=1)
        wanted = {HOSTILE, IN_R}
        until(lambda: wanted <= set(specs(visitor)), seconds=120, what="the images are looked at")
        yield visitor
    finally:
        visitor.leave()
        visitor.close()


def specs(user: Visitor) -> dict[str, Any]:
    answer = user.session("GET", "/api/kernelspecs")
    answer.raise_for_status()
    return dict(answer.json()["kernelspecs"])


def refusal(user: Visitor, kernel: str) -> str:
    notebook = {"name": "a", "path": "a.ipynb", "type": "notebook", "kernel": {"name": kernel}}
    answer = user.session("POST", "/api/sessions", json=notebook)
    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    return str(answer.json()["message"])


def seen(user: Visitor, kernel: str) -> dict[str, Any]:
    return dict(json.loads(user.run(LOOK, kernel=kernel)))


@pytest.fixture(scope="module")
def outside(user: Visitor) -> dict[str, Any]:
    return seen(user, "python3")


@pytest.fixture(scope="module")
def in_sites(user: Visitor) -> dict[str, Any]:
    return seen(user, SITES)


@pytest.mark.parametrize("kernel", [SITES, OWN])
def test_a_kernel_in_an_image_is_the_users_and_the_jobs(
    portal: Instance,
    user: Visitor,
    home: Path,
    outside: dict[str, Any],
    in_sites: dict[str, Any],
    kernel: str,
) -> None:
    nas = Path(portal.settings["session"]["folders"]["isilon"])
    inside = in_sites if kernel == SITES else seen(user, kernel)
    account = pwd.getpwnam(USER)
    assert (inside["answer"], inside["uid"], inside["home"]) == (42, account.pw_uid, str(home))
    assert inside["cwd"] == str(home)
    assert inside["has_apt"]
    assert inside["nas"] == sorted(path.name for path in nas.iterdir())
    for name in ("CUDA_VISIBLE_DEVICES", "PORTAL_JOB_ID"):
        assert inside["env"][name] == outside["env"][name]


def test_a_kernel_in_an_image_is_told_nothing_of_the_session(
    outside: dict[str, Any], in_sites: dict[str, Any]
) -> None:
    session, inside = outside["env"], in_sites["env"]
    assert {"JUPYTERHUB_API_TOKEN", "BASH_ENV", "MODULEPATH"} <= set(session)
    leaked = [name for name in inside if name.startswith(("JUPYTERHUB", "MODULE", "PYTHONPATH"))]
    assert (leaked, inside.get("BASH_ENV")) == ([], None)
    assert session["JUPYTERHUB_API_TOKEN"] not in inside.values()
    assert inside["PATH"] == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert inside.get("LD_LIBRARY_PATH", "/.singularity.d/libs") == "/.singularity.d/libs"


def test_kernels_in_images_are_named_after_them(user: Visitor) -> None:
    titles = {name: spec["spec"]["display_name"] for name, spec in specs(user).items()}
    assert titles[SITES] == "Python 3.11 · Tools"
    assert titles[OWN] == "Python 3.11 · mine"
    assert titles[IN_R] == "R 4.2 · r"


@pytest.mark.parametrize("kernel", [SITES, IN_R])
def test_a_kernel_in_an_image_opens_no_port(user: Visitor, kernel: str) -> None:
    (job,) = user.instance.jobs(user=USER)
    kernel_id = user.open_kernel(kernel=kernel)
    try:
        assert "42" in user.run_in(kernel_id, "cat(6 * 7)" if kernel == IN_R else "print(6 * 7)")
        if kernel == SITES:
            user.switch_debugger_on(kernel_id)
        assert len(sockets.tcp_ports_of_job(USER, job)) == 1
    finally:
        user.session("DELETE", f"/api/kernels/{kernel_id}").raise_for_status()


def test_r_in_an_image_is_a_kernel(user: Visitor, home: Path) -> None:
    look = 'cat(6 * 7, getwd(), file.exists("/usr/share/doc/r-cran-irkernel"), Sys.getenv("PATH"))'
    answer, folder, has_irkernel, path = user.run(look, kernel=IN_R).split()
    assert (answer, folder, has_irkernel) == ("42", str(home), "TRUE")
    assert path.startswith("/usr/local/sbin:")


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("own-text.sif", "is no image"),
        ("own-short.sif", "1048576 of"),
        ("own-broken.sif", "Apptainer says"),
        ("own-link.sif", "is a link"),
    ],
)
def test_an_image_that_cannot_be_used_says_why(user: Visitor, kernel: str, words: str) -> None:
    assert specs(user)[kernel]["spec"]["display_name"].startswith("Cannot be used · ")
    assert words in refusal(user, kernel)


def test_an_image_of_the_site_that_is_lost_is_for_the_administrators(
    user: Visitor, tools: Path
) -> None:
    aside = tools.rename(tools.with_name("aside"))
    try:
        lost = refusal(user, SITES)
        assert f"no image {tools}" in lost
        assert "administrators" in lost
        tools.touch(mode=0o600)
        assert f"not read the image {tools}" in refusal(user, SITES)
    finally:
        aside.rename(tools)


def traces(home: Path) -> list[Path]:
    """Return what the hostile image leaves where it can."""
    uid = pwd.getpwnam(USER).pw_uid
    return [home / "evil-home", Path(tempfile.gettempdir(), f"evil-tmp-{uid}")]


def test_a_hostile_image_changes_nothing_when_it_is_looked_at(user: Visitor, home: Path) -> None:
    assert [trace for trace in traces(home) if trace.exists()] == []
    offered = {name: spec["spec"] for name, spec in specs(user).items() if "hostile" in name}
    # It may say that it has R; its kernels start as any image's do.
    assert {spec["argv"][0] for spec in offered.values()} == {"python3", "R"}
    assert all(spec["display_name"].endswith(" · hostile") for spec in offered.values())


def test_a_hostile_image_changes_its_own_kernel_alone(user: Visitor, home: Path) -> None:
    try:
        assert seen(user, HOSTILE)["env"]["PATH"].startswith("/evil:")
        after = seen(user, "python3")["env"], seen(user, SITES)["env"]
        assert "/evil" not in str(after)
    finally:
        for trace in traces(home):
            trace.unlink()


def of_images(user: str) -> list[psutil.Process]:
    """Return the user's processes that show an image or wait for what runs in one."""
    return running("squashfuse", user=user) + running("Apptainer", user=user)


COUNT = """\
import pathlib, signal, time
interrupts = []
signal.signal(signal.SIGINT, lambda *_: interrupts.append(1))
pathlib.Path("counts").touch()
while not interrupts: time.sleep(0.05)
time.sleep(0.5)
print(interrupts)
"""


@pytest.fixture
def kernel_id(user: Visitor, home: Path) -> Iterator[str]:
    """A kernel in an image, when no other one is left."""
    (home / "counts").unlink(missing_ok=True)
    until(lambda: of_images(USER) == [], seconds=20, what="earlier kernels are gone")
    kernel_id = user.open_kernel(kernel=SITES)
    yield kernel_id
    user.session("DELETE", f"/api/kernels/{kernel_id}")
    (home / "counts").unlink(missing_ok=True)


def test_a_kernel_in_an_image_is_interrupted_once(
    user: Visitor, home: Path, kernel_id: str
) -> None:
    with ThreadPoolExecutor() as beside:
        written = beside.submit(user.run_in, kernel_id, COUNT)
        until(lambda: (home / "counts").exists(), seconds=60, what="the cell runs")
        user.session("POST", f"/api/kernels/{kernel_id}/interrupt").raise_for_status()
        assert written.result() == "[1]\n"


def test_a_kernel_in_an_image_is_restarted_and_leaves_nothing(
    user: Visitor, kernel_id: str
) -> None:
    user.run_in(kernel_id, "mine = 1")
    user.session("POST", f"/api/kernels/{kernel_id}/restart").raise_for_status()
    assert "NameError" in user.run_in(kernel_id, "mine")
    assert len(of_images(USER)) == 2
    # One that does not listen when it is told to end, and so is killed.
    os.kill(int(user.run_in(kernel_id, "import os; print(os.getpid())")), signal.SIGSTOP)
    user.session("DELETE", f"/api/kernels/{kernel_id}").raise_for_status()
    until(lambda: of_images(USER) == [], seconds=20, what="the kernel's image is gone")
