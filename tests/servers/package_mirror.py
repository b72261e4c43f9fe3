"""A site's mirrors of PyPI and npm, made of packages in folders; run where nothing else is reached.

    python3 package_mirror.py PORT WHEELS NPM_CACHE

WHEELS are served as PyPI's simple index (PEP 503), the contents of a cache of npm's as its
registry: what it says of packages, and their files.
"""

import base64
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NAME = re.compile(r"(?:@[^/]+/)?[^/@]+(?:/-/[^/]+\.tgz)?$")


def projects(wheels: Path) -> dict[str, list[Path]]:
    """Return the files of each project, by its normalised name."""
    found: dict[str, list[Path]] = {}
    for file in wheels.iterdir():
        name = re.sub(r"[-_.]+", "-", file.name.partition("-")[0]).lower()
        found.setdefault(name, []).append(file)
    return found


def cached(cache: Path) -> dict[str, Path]:
    """Return what is in a cache of npm's (cacache), by the end of its address.

    That is ``NAME`` for what a registry says of a package, and ``NAME/-/FILE.tgz``.
    """
    return dict(_cached(cache / "_cacache"))


def _cached(cache: Path) -> Iterator[tuple[str, Path]]:
    for index in (cache / "index-v5").rglob("*"):
        for line in index.read_text().splitlines() if index.is_file() else ():
            entry = json.loads(line.partition("\t")[2] or "{}")
            found = _NAME.search(unquote(entry.get("key", "")))
            if found and (integrity := entry.get("integrity")):
                algorithm, _, digest = integrity.partition("-")
                number = base64.b64decode(digest).hex()
                content = cache / "content-v2" / algorithm / number[:2] / number[2:4] / number[4:]
                yield found[0], content


class Mirror(BaseHTTPRequestHandler):
    """Answers both."""

    wheels: dict[str, list[Path]]
    packages: dict[str, Path]
    own: str

    def do_GET(self) -> None:
        """Answer with an index, or a file."""
        path = unquote(urlsplit(self.path).path)
        kind, _, rest = path.lstrip("/").partition("/")
        if kind == "simple" and rest.strip("/") in self.wheels:
            self._answer(_index(self.wheels[rest.strip("/")]), "text/html")
        elif kind == "files" and (file := self._wheel(rest)):
            self._answer(file.read_bytes(), "application/octet-stream")
        elif kind == "npm" and rest in self.packages:
            self._answer_with(self.packages[rest])
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        """Say what was asked, for the test."""
        sys.stdout.write(f"{self.command} {unquote(self.path)}\n")
        sys.stdout.flush()

    def _answer_with(self, file: Path) -> None:
        """Answer as a registry does: what it says of a package leads to its own files."""
        body = file.read_bytes()
        if body[:1] != b"{":
            self._answer(body, "application/octet-stream")
            return
        said = json.loads(body)
        for version in said["versions"].values():
            found = _NAME.search(version["dist"]["tarball"])
            version["dist"]["tarball"] = f"{self.own}/npm/{found and found[0]}"
        self._answer(json.dumps(said).encode(), "application/json")

    def _wheel(self, name: str) -> Path | None:
        return next(
            (file for files in self.wheels.values() for file in files if file.name == name), None
        )

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _index(files: list[Path]) -> bytes:
    links = "".join(
        f'<a href="/files/{file.name}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}">'
        f"{file.name}</a>\n"
        for file in files
    )
    return f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


def main(port: str, wheels: str, cache: str) -> None:
    """Serve until ended."""
    Mirror.wheels, Mirror.packages = projects(Path(wheels)), cached(Path(cache))
    Mirror.own = f"http://127.0.0.1:{port}"
    ThreadingHTTPServer(("127.0.0.1", int(port)), Mirror).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
