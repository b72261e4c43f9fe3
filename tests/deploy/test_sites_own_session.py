"""An environment for sessions as a site's own tool makes it: the page's commands, our wheels."""

import json
import re
import subprocess
from pathlib import Path

import bootstrap
import pytest
from wheels import build_wheels

from tests import roles
from tests.pages import how_to

TASKS = [{"include_role": {"name": "environments", "tasks_from": "own_session"}}]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "portal"
    here = {
        "/sw/portal-0.2.0": str(place),
        "deploy/locks": str(bootstrap.LOCKS),
        "dist/data-scientist-portal-0.2.0/*.whl": " ".join(map(str, build_wheels())),
    }
    commands = how_to("attach-to-your-slurm.md", 3, here)
    done = subprocess.run(
        ["/bin/bash", "-ec", commands],
        env=bootstrap.child_environment(PIP_COMPILE="0"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest.mark.timeout(600)
def test_the_deployment_takes_it(environment: Path, tmp_path: Path) -> None:
    hosts = {"node": {"environments_session": str(environment)}}
    assert roles.refusals(roles.played(tmp_path, hosts, {}, TASKS)) == {}


def test_it_has_what_ours_has(environment: Path) -> None:
    ask = "from importlib.metadata import distributions; import json; "
    ask += "print(json.dumps([(one.name, one.version) for one in distributions()]))"
    done = subprocess.run([environment / "bin/python", "-Ic", ask], capture_output=True, check=True)
    has = {
        (re.sub("[._]", "-", name).lower(), version) for name, version in json.loads(done.stdout)
    }
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", bootstrap.lock_file("session").read_text(), re.M)
    assert len(locked) > 100
    assert set(locked) - has == set()
    extension = "share/jupyter/labextensions/data-scientist-portal/package.json"
    assert (environment / extension).is_file()
