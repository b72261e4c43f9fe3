"""The launcher as a site without Ansible installs it."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.__main__ import InstallationError, write
from jupyterhub_gpu_slurm.launcher_files import InstalledFile
from tests import faults
from tests.checkout import PYTHONPATH
from tests.instance import PREFIX, USERS, Instance

FOLDER = Path("/usr/local/libexec")
PROGRAM = FOLDER / f"{PREFIX}alone-launcher"
SUDOERS = Path("/etc/sudoers.d")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def install(portal: Instance) -> Iterator[Run]:
    """The command, for the test instance's hub and one of its users."""
    hub = pwd.getpwuid(Path(f"/proc/{faults.pid_of('hub')}").stat().st_uid).pw_name

    def run(*more: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "jupyterhub_gpu_slurm", "install-launcher"]
        argv += [f"--hub-user={hub}", f"--runas={USERS[0]}", f"--mark={portal.mark}"]
        argv += [f"--slurm-conf={portal.slurm_environment['SLURM_CONF']}", f"--path={PROGRAM}"]
        environment = os.environ | {"PYTHONPATH": PYTHONPATH}
        return subprocess.run(
            [*argv, *more], env=environment, capture_output=True, text=True, check=False
        )

    yield run
    for file in FOLDER.glob(f"{PROGRAM.name}*"):
        file.unlink()
    (SUDOERS / PROGRAM.name).unlink(missing_ok=True)


def test_the_hub_acts_as_its_users_by_it_and_as_nobody_else(install: Run) -> None:
    first = install()
    assert first.returncode == 0, first.stderr
    assert first.stdout.count("written:") == 3
    assert install().stdout.count("unchanged:") == 3
    hub = pwd.getpwuid(Path(f"/proc/{faults.pid_of('hub')}").stat().st_uid)

    def asked(user: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        argv = ["/usr/bin/sudo", "-n", "-u", user, "--", str(PROGRAM), *arguments]
        return subprocess.run(
            argv,
            input=json.dumps({"verb": "list"}),
            user=hub.pw_uid,
            group=hub.pw_gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )

    assert json.loads(asked(USERS[0]).stdout) == {"sessions": {}}
    for argv in (("root",), (USERS[1],), (USERS[0], "--help")):
        refused = asked(*argv)
        assert refused.returncode != 0
        assert refused.stdout == ""


def test_a_rule_that_sudo_would_not_take_is_not_written(tmp_path: Path) -> None:
    rule = InstalledFile(tmp_path / "rule", 0o440, "jupyterhub ALL=(\n")
    with pytest.raises(InstallationError, match="visudo refuses the rule"):
        write(rule, is_rule=True)
    assert list(tmp_path.iterdir()) == []
