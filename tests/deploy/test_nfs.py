"""The role's mounts against a real NFS server: options, rights, silence and return.

The units are rendered by the role itself; kernel, server and client are real (``tests.uml``). What
stands for the NAS's four nodes is one server with four addresses, which the client takes for four.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.files.quota import use_from, with_quota
from dsportal.session.page.notices import is_nearly_full
from tests import uml
from tests.instance import ROOT
from tests.pages import how_to

ADDRESSES = [f"127.0.0.{number}" for number in range(1, 5)]
PAPERS = "rsize=524288,wsize=524288,nolock,soft,timeo=50,retrans=1,proto=tcp"
Found = dict[str, Any]


def render(folder: Path, *, on_use: bool = False) -> None:
    """Let the role write its units, and nothing else."""
    values = {
        "nas_mounts_units": str(folder),
        "nas_mounts_address": "127.0.0.5",
        "nas_mounts_export": "/srv/nas",
        "nas_mounts_data_addresses": ADDRESSES,
        "nas_mounts_on_use": on_use,
    }
    program = Path(sys.executable).with_name("ansible")
    argv = ["localhost", "-m", "ansible.builtin.include_role", "-a"]
    argv += ["name=nas_mounts tasks_from=units", "-e", json.dumps(values)]
    config = {"ANSIBLE_CONFIG": str(ROOT / "deploy/ansible/ansible.cfg"), "LC_ALL": "C.UTF-8"}
    path = {"PATH": "/usr/bin:/bin", "ANSIBLE_HOME": str(folder / "ansible")}
    subprocess.run(
        [str(program), *argv],
        env=config | path,
        cwd=ROOT / "deploy/ansible",
        check=True,
        capture_output=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What was seen in one run of the machine."""
    folder = tmp_path_factory.mktemp("nfs")
    render(folder)
    # There is no systemd in that kernel.
    words = {"nas.example.org": ADDRESSES[0], "systemctl status": "# systemctl status"}
    (folder / "typed").write_text(how_to("mount-the-nas.md", 2, words))
    return uml.run(ROOT / "tests/nfs/machine.py", folder, seconds=180)


def test_each_data_mount_has_the_papers_options_and_a_device_of_its_own(found: Found) -> None:
    data = found["mounts"][1:]
    assert [mount["folder"] for mount in data] == [f"/mnt/isilon{n}" for n in range(1, 5)]
    assert [mount["source"] for mount in data] == [f"{one}:/srv/nas" for one in ADDRESSES]
    for mount in data:
        assert set(PAPERS.split(",")) <= set(mount["options"].split(",")), mount
    assert len({mount["device"] for mount in found["mounts"]}) == 5


def test_the_first_mount_has_the_defaults_with_locks_at_the_server(found: Found) -> None:
    first = found["mounts"][0]
    options = set(first["options"].split(","))
    assert first["folder"] == "/mnt/isilon"
    assert {"hard", "local_lock=none"} <= options
    assert not {"nolock", "soft"} & options
    assert found["lock"] == "True"


def test_the_how_tos_commands_show_exports_and_mounts(found: Found) -> None:
    exports, mounts = found["typed"].split("TARGET")
    assert exports.split()[-2:] == ["/srv/nas", "*"]
    for line in [f"/mnt/isilon{n} 127.0.0.{n}:/srv/nas nfs" for n in range(1, 5)]:
        assert line in " ".join(mounts.split())


def test_the_how_to_names_units_that_the_roles_write(tmp_path: Path) -> None:
    render(tmp_path, on_use=True)
    text = "".join(how_to("mount-the-nas.md", number) for number in (1, 2, 3))
    named = set(re.findall(r"[\w-]+\.(?:auto)?mount", text))
    assert len(named) == 3
    assert [unit for unit in named if not (tmp_path / unit).exists()] == []


def test_users_are_kept_apart_and_a_nodes_root_is_nobody(found: Found) -> None:
    assert found["rights"] == {
        "the owner reads": "the owner's",
        "another reads": "EACCES",
        "another lists": "EACCES",
        "the node's root reads": "EACCES",
        "another writes, as number": "1002",
        "the owner deletes what is another's": "EPERM",
        "the node's root changes the owner": "EPERM",
    }


def test_a_user_is_told_of_the_own_quota_over_nfs(found: Found) -> None:
    told = found["quota"]
    assert told["filling ends with"] == "EDQUOT"
    system = use_from(told["df"])
    assert (system.mount, system.kind, system.is_quota) == ("/mnt/isilon", "nfs", False)
    use = with_quota(system, told["quota"])
    assert (use.is_quota, use.size) == (True, 10 * 1024**2)
    assert is_nearly_full(use)
    assert not is_nearly_full(system)


def test_the_roles_check_finds_what_is_mounted_otherwise(found: Found) -> None:
    assert found["check"] == ""
    assert "/mnt/isilon4 is mounted without hard, rsize=1048576" in found["strict check"]
    assert "nothing is mounted there" in found["silence"]["check"] or (
        "/mnt/never does not answer" in found["silence"]["check"]
    )


def test_a_session_says_which_mount_is_silent_and_takes_it_back(found: Found) -> None:
    silence = found["silence"]
    assert silence["before"] == {"/mnt/never": "missing"}
    assert silence["first"]["/mnt/isilon"] == silence["first"]["/mnt/isilon1"] == "hangs"
    assert silence["after"] == {"/mnt/never": "missing"}


def test_a_silent_server_is_an_error_on_soft_mounts_and_a_pause_on_hard_ones(found: Found) -> None:
    silence = found["silence"]
    assert silence["soft"]["error"] in ("EIO", "ETIMEDOUT")
    # timeo=50,retrans=1: 5 s and 10 s, as nfs(5) counts them, and no more.
    assert silence["soft"]["seconds"] < 30
    assert silence["hard waits"] is True
    assert silence["hard"]["error"] == "ENOENT"
