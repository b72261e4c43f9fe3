"""What a deployment would change is said of a site that has nothing yet, and nothing is changed."""

import re
from pathlib import Path

import pytest

from tests.deploy import many_nodes
from tests.deploy.deploying import copied, deploy, said
from tests.instance import PREFIX
from tests.network.sockets import free_ports

NEW = f"{PREFIX}new"
NEW_FOLDER = f"data-scientist-{NEW}"
# Where an instance has something of its own as soon as it is prepared.
PLACES = ("/etc", "/var/lib", "/var/log", "/run", "/etc/tmpfiles.d")
SOURCES = "/var/cache/data-scientist-portal/sources"
NODES = [f"node{number:04d}" for number in range(1, 21)]


def said_of_the_head(
    site: Path, *options: str, seconds: int, **variables: str
) -> tuple[str, int, int]:
    """Deploy; return what was said, and how many tasks of the head went well and changed it."""
    done = deploy(site, *options, seconds=seconds, **variables)
    assert done.returncode == 0, done.stdout[-3000:]
    recap = re.search(r"head +: ok=(\d+) +changed=(\d+) +unreachable=0", done.stdout)
    assert recap, done.stdout[-2000:]
    return done.stdout, int(recap[1]), int(recap[2])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_new_head_is_asked_though_no_node_can_be_reached(tmp_path: Path) -> None:
    with many_nodes.site(tmp_path / "site", len(NODES)) as site:
        options = ["--limit", "head", "--check"]
        said, _, changed = said_of_the_head(site, *options, seconds=500, ANSIBLE_DIFF_ALWAYS="1")
        assert changed > 20
        assert re.findall(r"^\+NodeName=(\S+) .*NodeAddr=", said, re.MULTILINE) == NODES
    assert not many_nodes.ETC.exists()
    assert not Path(f"/etc/slurm-{many_nodes.NAME}").exists()


def there() -> list[Path]:
    """Return what there is of the new instance: something, where a run has failed before."""
    return [path for place in (*PLACES, SOURCES) for path in Path(place).glob(f"{NEW_FOLDER}*")]


def new_host(tmp_path: Path, **variables: object) -> Path:
    """Return the folder of an inventory for an instance that is not there, beside ours."""
    controller, node = free_ports(2)
    named: dict[str, object] = {
        "instance_name": NEW,
        "instance_folder_name": NEW_FOLDER,
        "slurm_conf_dir": f"/etc/slurm-{NEW}",
        "slurm_controller_port": controller,
        "slurm_virtual_nodes": [{"name": f"{NEW}001", "port": node}],
    }
    return copied(tmp_path, **(named | variables))


@pytest.mark.timeout(300)
def test_a_new_host_is_validated_and_gets_nothing(tmp_path: Path) -> None:
    folder, before = new_host(tmp_path), there()
    said, ok, changed = said_of_the_head(folder, "--stage", "validate", seconds=240)
    assert (ok > 50, changed) == (True, 0)
    # It installs a package, which this machine has.
    assert "What lists packages is there" not in said
    assert there() == before


@pytest.mark.timeout(300)
def test_what_is_wrong_with_the_portals_settings_is_said_before_anything_changes(
    tmp_path: Path,
) -> None:
    wrong = {"limits": {"everybody": {"max_gpus": 4}}, "session": {"memory_mb_per_gpu": "48 GB"}}
    folder, before = new_host(tmp_path, portal_settings=wrong), there()
    refused = deploy(folder, "--stage", "validate", seconds=240)
    assert refused.returncode != 0
    assert "limits.everybody: is not a known key" in said(refused)
    assert 'session.memory_mb_per_gpu = "48 GB": must be a whole number' in said(refused)
    assert there() == before
