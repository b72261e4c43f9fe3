from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dsportal.backup.manifest import Kind
from dsportal.backup.plan import outermost, sources
from dsportal.backup.services import slurm_ports


def test_what_lies_in_another_folder_is_taken_once() -> None:
    paths = [Path("/etc/portal/portal.toml"), Path("/etc/portal"), Path("/etc/munge/munge.key")]
    assert outermost(paths) == [Path("/etc/munge/munge.key"), Path("/etc/portal")]


def test_slurms_ports_are_its_own_where_none_are_named() -> None:
    assert slurm_ports("") == {"SlurmctldPort": 6817, "AccountingStoragePort": 6819}


def test_slurms_ports_are_read() -> None:
    text = "ClusterName=x\n#SlurmctldPort=1\nslurmctldport = 16817\nAccountingStoragePort=16819\n"
    assert slurm_ports(text) == {"SlurmctldPort": 16817, "AccountingStoragePort": 16819}


def test_every_database_of_the_state_is_taken_as_one(tmp_path: Path) -> None:
    """One in a folder was left out of the files, and taken in no other way."""
    (tmp_path / "archive").mkdir()
    for name in ("hub.sqlite", "archive/2025.sqlite", "archive/notes"):
        (tmp_path / name).touch()
    settings: Any = SimpleNamespace(
        hub=SimpleNamespace(state_dir=str(tmp_path), database_url=""),
        backup=SimpleNamespace(files=(), slurm_state_dir="", accounting_socket=""),
    )
    found = sources(settings, Path("/etc/portal.toml"))
    taken = [one.place for one in found if one.kind is Kind.SQLITE]
    assert taken == [str(tmp_path / "archive/2025.sqlite"), str(tmp_path / "hub.sqlite")]
