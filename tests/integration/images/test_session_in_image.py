"""Whole sessions in container images: real images, made of Debian's packages."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.options import words
from tests import faults, images
from tests.instance import USERS, Instance
from tests.network import sockets
from tests.processes import running
from tests.visitor import Visitor, session_of
from tests.waiting import until

LOOK = """
import json, os, sys
keys = ("CUDA_VISIBLE_DEVICES", "PORTAL_JOB_ID", "SLURM_JOB_ID", "PYTHONPATH", "LD_PRELOAD", "HOME")
print(json.dumps({
    "prefix": sys.base_prefix, "release": open("/etc/os-release").read(), "uid": os.getuid(),
    "nas": os.listdir(os.path.expanduser("~/isilon")), "has_python_of_the_host": os.path.exists(%r),
    **{key: os.environ.get(key) for key in keys},
}))
"""
FORK = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=print, args=["from a fork"])
child.start()
child.join()
"""


@pytest.fixture(scope="module")
def portal(portal: Instance) -> Iterator[Instance]:
    """The test instance, with two images in its form."""
    apptainer = str(images.apptainer())
    found = {
        "whole": images.session_image(),
        "bare": images.kernel_image(),
        "gone": Path("/var/no/such.sif"),
    }
    orders = {
        name: {"title": f"The {name} one", "path": str(path), "apptainer": apptainer, "binds": []}
        for name, path in found.items()
    }
    with faults.site_file(portal, f"c.GpuSlurmSpawner.session_images = {orders!r}"):
        yield portal


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[0], gpus=1, image="whole") as visitor:
        yield visitor


def test_the_form_offers_the_images(portal: Instance, visit: Callable[[str], Visitor]) -> None:
    # Who chose it the last time finds it chosen.
    offered = re.compile(r'<option value="whole"( selected)?>The whole one</option>')
    assert offered.search(visit(USERS[1]).note())


def test_the_session_is_what_is_in_the_image(portal: Instance, user: Visitor) -> None:
    session_python = portal.settings["session"]["python"]
    seen = json.loads(user.run(LOOK % session_python))
    entry_home = str(Path(portal.settings["hub"]["state_dir"]).parent / "home" / user.name)
    assert seen["uid"] == int(portal.slurm("/usr/bin/id", "-u", user.name))
    assert not seen["has_python_of_the_host"]
    assert seen["HOME"] == entry_home
    assert "datasets" in seen["nas"]
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["PORTAL_JOB_ID"]) == (
        "0",
        portal.jobs(user=user.name)[0],
    )
    assert seen["SLURM_JOB_ID"] is None
    assert (seen["PYTHONPATH"], seen["LD_PRELOAD"]) == (None, None)


def test_its_pages_and_terminals_work_through_the_portal(user: Visitor) -> None:
    assert user.http.get(f"/user/{user.name}/lab").status_code == 200
    assert "42" in user.type_in_terminal("echo $((6 * 7))", "42")


def test_it_listens_on_its_one_port_only(portal: Instance, user: Visitor) -> None:
    """With a kernel, whose forked processes can say something, and that can be debugged."""
    (job,) = portal.jobs(user=user.name)
    kernel_id = user.open_kernel()
    until(
        # What a fork wrote may come after the cell's end.
        lambda: "from a fork" in user.run_in(kernel_id, FORK),
        seconds=60,
        what="a fork's output is shown",
    )
    user.switch_debugger_on(kernel_id)
    assert len(sockets.tcp_ports_of_job(user.name, job)) == 1
    user.session("DELETE", f"/api/kernels/{kernel_id}").raise_for_status()


def test_it_ends_with_its_job(portal: Instance, visit: Callable[[str], Visitor]) -> None:
    visitor = visit(USERS[1])
    visitor.start_and_wait(gpus=0, image="whole")
    visitor.stop()
    with suppress(AssertionError):
        until(
            lambda: not running(user=visitor.name), seconds=30, what="all its processes have ended"
        )
    assert running(user=visitor.name) == []


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("bare", words.unfit_image("The bare one")),
        ("other", words.no_such_image("other", "whole", "bare", "gone")),
    ],
)
def test_an_image_that_will_not_do_is_refused_before_anything_is_submitted(
    portal: Instance, visit: Callable[[str], Visitor], image: str, message: str
) -> None:
    visitor = visit(USERS[1])
    answer = visitor.start(gpus=0, image=image)
    assert answer.status_code == 400
    assert answer.json()["message"] == message
    assert portal.jobs(user=visitor.name) == []


def test_an_image_that_the_hub_cannot_see_says_what_it_lacks_when_it_starts(
    portal: Instance, visit: Callable[[str], Visitor]
) -> None:
    visitor = visit(USERS[1])
    visitor.start(gpus=0, image="gone")
    until(lambda: visitor.server() is None, seconds=60, what="the start has failed")
    page = visitor.http.get(f"/hub/spawn-pending/{visitor.name}").text
    assert "The gone one ended" in page
