"""A site of many nodes on paper: its inventory, and what its controller remembers of the nodes."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from inventory import EXAMPLE, FOLDER

from tests.instance import PREFIX
from tests.network.sockets import free_port

NAME = f"{PREFIX}many"
FOLDER_NAME = f"data-scientist-{NAME}"
STATE = Path("/var/lib", FOLDER_NAME)
ETC = Path("/etc", FOLDER_NAME)
# The example's own values are refused.
_OURS = (("192.0.2.", "10.9.0."), ("example.org", "cluster.test"), ("dc=example", "dc=cluster"))
# What this machine, which is the head, lacks systemd for, and what would meet its own Slurm.
_SETTINGS = {
    "instance_name": NAME,
    "instance_folder_name": FOLDER_NAME,
    "slurm_conf_dir": f"/etc/slurm-{NAME}",
    "slurm_controller_port": free_port(),
    "slurm_node_adopts_logins": False,
    "nas_mounts_made_here": False,
    "nfs_server_exports": False,
    "nfs_client_mounts": False,
    "environments_kernels": [],
}


@contextmanager
def site(folder: Path, count: int) -> Iterator[Path]:
    """Write the inventory into a new folder; forget at the end what is remembered.

    The example's, with this machine as the head and with nodes that nobody reaches.
    """
    shutil.copytree(FOLDER / EXAMPLE, folder)
    for file in folder.rglob("*.yml"):
        text = file.read_text()
        for theirs, ours in _OURS:
            text = text.replace(theirs, ours)
        file.write_text(text)
    nodes = {f"node{number:04d}": _address(number) for number in range(1, count + 1)}
    hosts = yaml.safe_load((folder / "hosts.yml").read_text())
    machines = hosts["all"]["children"]
    machines["head_node"]["hosts"]["head"]["ansible_connection"] = "local"
    machines["compute_nodes"]["hosts"] = {
        name: {"ansible_host": address} for name, address in nodes.items()
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts))
    # The last file of a folder counts.
    (folder / "group_vars/all/z.yml").write_text(yaml.safe_dump(_SETTINGS))
    try:
        (STATE / "nodes").mkdir(parents=True)
        for name, address in nodes.items():
            (STATE / f"nodes/{name}.json").write_text(json.dumps([_described(name, address)]))
        yield folder
    finally:
        shutil.rmtree(STATE)


def _address(number: int) -> str:
    return f"10.9.{1 + number // 250}.{1 + number % 250}"


def _described(name: str, address: str) -> dict[str, object]:
    """Return what roles/slurm/tasks/machine.yml remembers of a node of four V100."""
    return {
        "name": name,
        "hostname": name,
        "address": address,
        "port": 6818,
        "hardware": "Sockets=2 CoresPerSocket=20 ThreadsPerCore=1 RealMemory=386000",
        "gpus": [{"type": "v100-sxm2-32gb", "count": 4, "files": "/dev/nvidia[0-3]"}],
        "nvml": False,
        "virtual": False,
    }
