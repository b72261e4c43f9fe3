"""Whether an image holds a session's server, read from real images that are made here."""

import struct
import subprocess
from pathlib import Path

import pytest

from dsportal.containers.server import holds_server


def root(folder: Path, *programs: str) -> Path:
    for program in ("usr/bin/python3", *programs):
        (folder / program).parent.mkdir(parents=True, exist_ok=True)
        (folder / program).touch()
    return folder


def sif(folder: Path) -> Path:
    """Make a SIF as the format's description says, around a real squashfs."""
    squashfs, file = folder.with_suffix(".squashfs"), folder.with_suffix(".sif")
    argv = ["/usr/bin/mksquashfs", str(folder), str(squashfs), "-no-progress", "-quiet"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    content = squashfs.read_bytes()
    start = 4096
    header = struct.pack(
        "<32s10s3s3s16s8q",
        b"#!",
        b"SIF_MAGIC\0",
        b"01",
        b"02",
        b"",
        0,
        0,
        0,
        2,
        128,
        1170,
        start,
        0,
    )
    labels = struct.pack("<i?III7q128s384s", 0x4002, True, 1, 1, 0, *[0] * 7, b"", b"")
    kind = struct.pack("<ii", 1, 2)
    system = struct.pack(
        "<i?III7q128s384s", 0x4004, True, 2, 1, 0, start, len(content), 0, 0, 0, 0, 0, b"", kind
    )
    head = header + labels + system
    file.write_bytes(head.ljust(start, b"\0") + content)
    return file


@pytest.mark.parametrize("make", [root, lambda *given: sif(root(*given))], ids=["folder", "sif"])
@pytest.mark.parametrize("place", ["usr/local/bin", "opt/conda/envs/lab/bin"])
def test_the_server_is_found_wherever_it_lies(make, place: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert holds_server(make(tmp_path / "a", f"{place}/jupyterhub-singleuser")) is True
    assert (
        holds_server(make(tmp_path / "b", f"{place}/jupyterhub", "srv/jupyterhub-singleuser"))
        is False
    )


def test_what_cannot_be_read_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "text.sif").write_text("no image")
    whole = sif(root(tmp_path / "whole"))
    (tmp_path / "half.sif").write_bytes(whole.read_bytes()[:3000])
    for name in ("gone.sif", "text.sif", "half.sif"):
        assert holds_server(tmp_path / name) is None
