from pathlib import Path

from dsportal.backup.plan import outermost
from dsportal.backup.services import slurm_ports


def test_what_lies_in_another_folder_is_taken_once() -> None:
    paths = [Path("/etc/portal/portal.toml"), Path("/etc/portal"), Path("/etc/munge/munge.key")]
    assert outermost(paths) == [Path("/etc/munge/munge.key"), Path("/etc/portal")]


def test_slurms_ports_are_its_own_where_none_are_named() -> None:
    assert slurm_ports("") == {"SlurmctldPort": 6817, "AccountingStoragePort": 6819}


def test_slurms_ports_are_read() -> None:
    text = "ClusterName=x\n#SlurmctldPort=1\nslurmctldport = 16817\nAccountingStoragePort=16819\n"
    assert slurm_ports(text) == {"SlurmctldPort": 16817, "AccountingStoragePort": 16819}
