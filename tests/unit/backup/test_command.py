"""A restore checks everything before it changes anything."""

import argparse
import io
import multiprocessing
import os
import signal
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dsportal.backup import archive, command, manifest, services
from dsportal.backup.manifest import BackupEntry, BackupError, Kind, Manifest


@pytest.mark.parametrize(
    ("owner", "kind", "said"),
    [
        ("nobody-of-that-name", Kind.FILES, "nobody-of-that-name"),
        ("nobody-of-that-name", Kind.SQLITE, "nobody-of-that-name"),
        # Of a machine that has no database.
        ("root", Kind.POSTGRESQL, "set hub.database_url"),
    ],
)
def test_a_part_that_cannot_be_put_back_leaves_the_others_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, kind: Kind, said: str
) -> None:
    places = [tmp_path / "etc", tmp_path / "state"]
    for number, owner_here in enumerate(["root", owner]):
        places[number].write_text("now")
        member = tarfile.TarInfo("root")
        member.uname, member.gname, member.size = owner_here, "root", 4
        with tarfile.open(tmp_path / f"{number}.files", "w") as tar:
            tar.addfile(member, io.BytesIO(b"then"))
    parts = tuple(
        BackupEntry(
            each, str(place), f"{number}.files", archive.digest(content), owner, "root", 0o600
        )
        for number, (place, each) in enumerate(zip(places, (Kind.FILES, kind), strict=True))
        for content in [tmp_path / f"{number}.files"]
    )
    content = Manifest(manifest.FORMAT, "0.1", "head", "then", "", parts)
    (tmp_path / manifest.NAME).write_bytes(manifest.to_json(content))
    archive.write(content, tmp_path, tmp_path / "backup.tar.gz")
    settings = tmp_path / "portal.toml"
    settings.touch()
    # Nothing is installed here, and nothing is asked whether it runs.
    monkeypatch.setattr(command, "_release", lambda: "0.1")
    nothing = SimpleNamespace(hub=SimpleNamespace(database_url=""))
    monkeypatch.setattr(command, "load", lambda _: nothing)
    monkeypatch.setattr(services, "running", lambda _: [])
    with pytest.raises(BackupError, match=said):
        command.restore(tmp_path / "backup.tar.gz", settings, replace=True)
    assert [place.read_text() for place in places] == ["now", "now"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_backup_that_is_ended_leaves_no_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Each night that a shutdown had ended left a copy of all databases, which nothing removed."""

    def make(file: Path, settings: Path) -> None:
        with archive.staging(tmp_path) as folder:
            (folder / "dump").write_text("secret")
            os.kill(os.getpid(), number)
            time.sleep(60)

    monkeypatch.setattr(command, "make", make)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    options = argparse.Namespace(
        command="backup", nightly=False, file=tmp_path / "x", settings=tmp_path / "y"
    )

    def run() -> None:
        signal.signal(number, signal.SIG_DFL)  # as a shell or cron begins it
        command.run(options)

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    child.join(30)
    assert child.exitcode == 128 + number
    assert not list(tmp_path.iterdir())
