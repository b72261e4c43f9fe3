"""Slices of GPUs (MIG), as the deployment describes them to Slurm: slurmd itself reads it.

Stand-ins are what no machine here has: the list of nvidia-smi, and devices, which are the kernel's
unused text consoles.
"""

import re
import subprocess
from pathlib import Path

import jinja2

from tests import roles

SLURM = roles.ROLES / "slurm"
LISTED = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5a3b)\n"
SLICES = """\
|   0     13       MIG 1g.5gb           0         0          0:1     |
|   0     14       MIG 1g.5gb           0         0          0:1     |
|   0      2       MIG 3g.20gb          2         0          0:3     |
"""
DEVICES = {
    "/dev/nvidia0": "/dev/tty20",
    **{f"/dev/nvidia-caps/nvidia-cap{number}": f"/dev/tty{number}" for number in range(21, 27)},
}
# What else slurmd wants to know of its node, and of us.
SETTINGS = """\
ClusterName=slices
SlurmctldHost=localhost
GresTypes=gpu
SlurmdSpoolDir={folder}
"""


def described(folder: Path) -> list[dict[str, object]]:
    """Return the node's GPUs, as the role asks for them."""
    numbers = iter(range(21, 27))
    for place in ("gi13", "gi13/ci0", "gi14", "gi14/ci0", "gi2", "gi2/ci0"):
        file = folder / "gpu0/mig" / place / "access"
        file.parent.mkdir(parents=True)
        file.write_text(f"DeviceFileMinor: {next(numbers)}\nDeviceFileMode: 292\n")
    machine = roles.loaded(SLURM / "files/describe_machine.py")
    gpus: list[dict[str, object]] = machine.gpus(LISTED, {}, machine.slices(SLICES, {}, folder))
    for gpu in gpus:
        gpu["files"] = ",".join(DEVICES[file] for file in str(gpu["files"]).split(","))
    return gpus


def test_slurmd_knows_each_slice_by_its_type_and_its_devices(tmp_path: Path) -> None:
    node = {"name": "gpu01", "hostname": "localhost", "gpus": described(tmp_path / "driver")}
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.ChainableUndefined)  # noqa: S701
    rendered = {
        name: environment.from_string((SLURM / f"templates/{name}.j2").read_text()).render(
            slurm_nodes=[node], slurm_partitions=[]
        )
        for name in ("slurm.conf", "gres.conf")
    }
    (line,) = re.findall(r"^NodeName=.*$", rendered["slurm.conf"], re.M)
    line = re.sub(r" (NodeAddr|Port)=(?= )", "", line)
    (tmp_path / "gres.conf").write_text(rendered["gres.conf"])
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"{SETTINGS.format(folder=tmp_path)}{line}\n")
    argv = ["/usr/sbin/slurmd", "-G", "-f", str(conf), "-N", "gpu01"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    found = re.findall(r"Type=(\S+) Count=(\d+) .*File=(\S+)", done.stdout + done.stderr)
    assert sorted(found) == [
        ("a100-sxm4-40gb_1g.5gb", "1", "/dev/tty20,/dev/tty21,/dev/tty22"),
        ("a100-sxm4-40gb_1g.5gb", "1", "/dev/tty20,/dev/tty23,/dev/tty24"),
        ("a100-sxm4-40gb_3g.20gb", "1", "/dev/tty20,/dev/tty25,/dev/tty26"),
    ]
