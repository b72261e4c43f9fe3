"""A registry with images in it: Debian's docker-registry, the reference implementation.

It speaks the OCI distribution protocol over TLS and wants a password. Its images are made here, of
a shell and of random bytes.
"""

import gzip
import hashlib
import io
import json
import os
import re
import ssl
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.instance import PREFIX, SETTINGS
from tests.network.gate import Gate, opened
from tests.waiting import until

# Its own for each instance: tests beside these give theirs to skopeo, on a command line.
USER, KEY = "$oauthtoken", f"nvapi-{PREFIX}-key"
_BUSYBOX = Path("/bin/busybox")
_PROGRAMS = ("sh", "cat", "echo", "id")
_LISTENS = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
_AUTHORITY = str(SETTINGS.parent / "test-tls/authority.crt")
_OCI = "application/vnd.oci.image"
_CONFIG = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}/storage}}}}
auth: {{htpasswd: {{realm: images, path: {folder}/htpasswd}}}}
http:
  addr: 127.0.0.1:0
  tls: {{certificate: {folder}/registry.crt, key: {folder}/registry.key}}
"""


@dataclass(frozen=True)
class Registry:
    """A running one, behind a gate that can hold back what it sends."""

    folder: Path
    gate: Gate

    @property
    def host(self) -> str:
        """What images' names begin with."""
        return f"localhost:{self.gate.port}"

    def push(self, name: str, *layers: Mapping[str, bytes]) -> list[str]:
        """Make an image of layers, each a table of files; return the layers' digests."""
        layout = self.folder / "image"
        digests = _make(layout, layers)
        argv = ["skopeo", "copy", "--quiet", f"--dest-creds={USER}:{KEY}"]
        _call(
            *argv, f"oci:{layout}:image", f"docker://{self.host}/{name}", SSL_CERT_FILE=_AUTHORITY
        )
        return digests

    def push_list(self, name: str, of: Mapping[str, str]) -> str:
        """Make a list of images that are there, one for each architecture; return its digest."""
        repository, tag = name.split(":")
        manifests = [self._listed(repository, one, machine) for machine, one in of.items()]
        kind = f"{_OCI}.index.v1+json"
        content = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": manifests})
        answer = self._ask("PUT", repository, tag, content=content, headers={"Content-Type": kind})
        return answer.headers["docker-content-digest"]

    def _listed(self, repository: str, tag: str, architecture: str) -> dict[str, Any]:
        kind = f"{_OCI}.manifest.v1+json"
        found = self._ask("GET", repository, tag, headers={"Accept": kind})
        about = {"digest": found.headers["docker-content-digest"], "size": len(found.content)}
        return {
            "mediaType": kind,
            "platform": {"os": "linux", "architecture": architecture},
            **about,
        }

    def _ask(self, method: str, repository: str, tag: str, **request: Any) -> httpx.Response:
        url = f"https://{self.host}/v2/{repository}/manifests/{tag}"
        authority = ssl.create_default_context(cafile=_AUTHORITY)
        answer = httpx.request(method, url, auth=(USER, KEY), verify=authority, **request)
        return answer.raise_for_status()

    def times_asked_for(self, digest: str) -> int:
        """Return how often a blob was sent, whole or in part."""
        log = (self.folder / "log").read_text(encoding="utf-8")
        return sum(
            line.count(f"/blobs/{digest} HTTP") for line in log.splitlines() if '"GET ' in line
        )


@contextmanager
def running(folder: Path, port: int) -> Iterator[Registry]:
    """Start one that keeps its data in a folder; clients reach it at ``port``."""
    _certify(folder)
    (folder / "config.yml").write_text(_CONFIG.format(folder=folder))
    secret = _call("htpasswd", "-nbB", USER, KEY)
    (folder / "htpasswd").write_text(secret)
    argv = ["docker-registry", "serve", str(folder / "config.yml")]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(argv, stdout=log, stderr=log) as server,
    ):
        try:
            found = until(
                lambda: _LISTENS.search((folder / "log").read_text()),
                seconds=20,
                what="the registry listens",
            )
            assert found
            with opened(port, int(found[1])) as gate:
                yield Registry(folder, gate)
        finally:
            server.terminate()


def _certify(folder: Path) -> None:
    """Let the tests' authority certify the registry."""
    _call(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-days", "10", "-subj", "/CN=Test registry"),
        *("-addext", "subjectAltName=DNS:localhost"),
        *("-CA", _AUTHORITY, "-CAkey", _AUTHORITY.replace(".crt", ".key")),
        *("-keyout", str(folder / "registry.key"), "-out", str(folder / "registry.crt")),
    )


def shell() -> dict[str, bytes]:
    """Return a layer with a shell, one file and a few links to it."""
    return {"bin/busybox": _BUSYBOX.read_bytes()}


def noise(size: int) -> dict[str, bytes]:
    """Return a layer that cannot be packed to less."""
    return {"data/noise": os.urandom(size)}


def _make(layout: Path, layers: tuple[Mapping[str, bytes], ...]) -> list[str]:
    """Write an OCI image layout (image specification 1.1)."""
    (layout / "blobs/sha256").mkdir(parents=True, exist_ok=True)

    def put(kind: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (layout / "blobs/sha256" / digest).write_bytes(content)
        kind = f"{_OCI}.{kind}"
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    tars = [_packed(files) for files in layers]
    blobs = [put("layer.v1.tar+gzip", gzip.compress(tar, 1, mtime=0)) for tar in tars]
    diffs = [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]
    config = {"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers"}}
    described = json.dumps(config | {"rootfs": {"type": "layers", "diff_ids": diffs}}).encode()
    parts = {"config": put("config.v1+json", described), "layers": blobs}
    kind = {"mediaType": f"{_OCI}.manifest.v1+json"}
    manifest = put("manifest.v1+json", json.dumps({"schemaVersion": 2, **kind, **parts}).encode())
    named = manifest | {"annotations": {"org.opencontainers.image.ref.name": "image"}}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return [str(blob["digest"]) for blob in blobs]


def _packed(files: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text))
        if "bin/busybox" in files:
            for program in _PROGRAMS:
                entry = tarfile.TarInfo(f"bin/{program}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                archive.addfile(entry)
    return content.getvalue()


def _call(*argv: str, **variables: str) -> str:
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"} | variables,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout
