"""What the hub may do on the machine, and what it may not."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.instance import ADMIN, PREFIX, USERS, Instance

HUB_USER = f"jupyterhub-{PREFIX}"


def as_the_hub(*argv: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """Run something as the hub's user."""
    return subprocess.run(
        ["/usr/sbin/runuser", "-u", HUB_USER, "--", *argv],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.usefixtures("portal")
def test_hub_proxy_and_front_do_not_run_as_root() -> None:
    argv = ["/bin/ps", "-ww", "-u", HUB_USER, "-o", "args="]
    running = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert "jupyterhub_config.py" in running
    assert "proxy.mjs" in running
    assert "/usr/sbin/nginx" in running


def test_the_launcher_answers_for_a_user_of_the_portal(portal: Instance) -> None:
    launcher = portal.settings["slurm"]["launcher"]
    order = json.dumps({"verb": "cancel", "session": "0" * 32})
    done = as_the_hub("/usr/bin/sudo", "-n", "-u", USERS[0], "--", launcher, stdin=order)
    assert json.loads(done.stdout) == {"job_ids": []}, done.stderr


def test_sudos_own_list_is_this_one_rule(portal: Instance) -> None:
    launcher, login = portal.settings["slurm"]["launcher"], portal.settings["authentication"]
    groups = ", ".join(f"%{name}" for name in login["allowed_groups"] + login["admin_groups"])
    listed = as_the_hub("/usr/bin/sudo", "-n", "-l").stdout
    _, _, rules = listed.partition("may run the following commands")
    assert [line.strip() for line in rules.splitlines()[1:] if line.strip()] == [
        f'({groups}, slurm) NOPASSWD: {launcher} ""',
    ]


@pytest.mark.parametrize("text", [b"", b"\xff", b"[" * 100_000, b'{"verb": []}', b"x" * (3 << 20)])
def test_bad_input_to_the_launcher_ends_in_one_line(portal: Instance, text: bytes) -> None:
    launcher = portal.settings["slurm"]["launcher"]
    argv = ["/usr/sbin/runuser", "-u", HUB_USER, "--", "/usr/bin/sudo", "-n", "-u", USERS[0]]
    done = subprocess.run([*argv, "--", launcher], input=text, capture_output=True, check=False)
    assert "error" in json.loads(done.stdout)
    assert done.stderr.splitlines() == [b"slurm-launcher: ready"]


def test_a_user_cannot_look_into_the_launcher_that_acts_as_the_user(portal: Instance) -> None:
    launcher = portal.settings["slurm"]["launcher"]
    argv = ["/usr/sbin/runuser", "-u", HUB_USER, "--", "/usr/bin/sudo", "-n", "-u", USERS[0]]
    pipe = subprocess.PIPE
    with subprocess.Popen([*argv, "--", launcher], stdin=pipe, stdout=pipe, stderr=pipe) as command:
        assert command.stderr
        assert command.stderr.readline() == b"slurm-launcher: ready\n"
        (pid,) = _processes(USERS[0], launcher)
        for name in ("mem", "environ", "maps"):
            with pytest.raises(RuntimeError, match="Permission denied"):
                portal.slurm("/bin/cat", f"/proc/{pid}/{name}", user=USERS[0])
        command.communicate(b"{}")


def _processes(user: str, program: str) -> list[str]:
    argv = ["/bin/ps", "-ww", "-u", user, "-o", "pid=,args="]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines if program in line and "sudo" not in line]


@pytest.mark.parametrize(
    ("user", "command"),
    [
        (USERS[0], ["/usr/bin/id"]),
        (USERS[0], ["/bin/sh", "-c", "id"]),
        (USERS[0], ["LAUNCHER", "an-argument"]),
        ("root", ["LAUNCHER"]),
        ("slurm", ["LAUNCHER", "an-argument"]),
        ("slurm", ["/usr/bin/id"]),
        ("slurm", ["/usr/bin/scontrol", "update", "JobId=1", "TimeLimit=60"]),
        ("nobody", ["LAUNCHER"]),
        (ADMIN, ["/usr/bin/id"]),
    ],
)
def test_sudo_allows_the_hub_nothing_else(portal: Instance, user: str, command: list[str]) -> None:
    launcher = portal.settings["slurm"]["launcher"]
    argv = [launcher if word == "LAUNCHER" else word for word in command]
    done = as_the_hub("/usr/bin/sudo", "-n", "-u", user, "--", *argv)
    assert done.returncode != 0
    assert done.stdout == ""


@pytest.mark.parametrize("user", [USERS[0], HUB_USER])
def test_nobody_but_root_can_change_what_sudo_allows(portal: Instance, user: str) -> None:
    launcher = Path(portal.settings["slurm"]["launcher"])
    for path in (launcher, launcher.with_suffix(".json"), launcher.parent):
        assert path.stat().st_uid == 0
        assert path.stat().st_mode & 0o022 == 0
    done = subprocess.run(
        ["/usr/sbin/runuser", "-u", user, "--", "/usr/bin/test", "-w", str(launcher)], check=False
    )
    assert done.returncode != 0


def test_users_cannot_read_the_hubs_secrets(portal: Instance) -> None:
    state = Path(portal.settings["hub"]["state_dir"])
    for path in (state / "jupyterhub_cookie_secret", state / "jupyterhub.sqlite"):
        assert path.exists()
        with pytest.raises(RuntimeError, match="Permission denied"):
            portal.slurm("/bin/cat", str(path), user=USERS[0])
