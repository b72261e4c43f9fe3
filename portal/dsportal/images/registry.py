"""The registry client: what a registry has, and its download, with skopeo.

skopeo leaves each layer that has arrived whole, checked against its digest, in the folder that it
fills (an OCI image layout), and does not ask for it again. That is why a pull can be resumed.
"""

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsportal.images import programs
from dsportal.images.errors import ImageError, KeyRefused
from dsportal.images.key import Key, authfile
from dsportal.images.reference import Reference
from dsportal.images.site import Site
from dsportal.images.size import bytes_in

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le"}
_QUESTION_HOURS = 120 / 3600
_FETCH_HOURS = 12.0


@dataclass(frozen=True)
class Found:
    """An image that the registry has."""

    digest: str
    """Of what the name leads to: one image, or a list of one for each kind of machine."""
    exact: str
    """Of the image for this machine."""
    size: int
    """Of all its layers, as they travel, in bytes."""


@dataclass(frozen=True)
class Registry:
    """The registry of one image, asked with one key."""

    site: Site
    reference: Reference
    key: Key | None

    def find(self) -> Found:
        """Ask what the name leads to now; raises `ImageError`."""
        digest, content = self._manifest(self.reference.digest)
        exact = digest
        if "manifests" in content:
            exact, content = self._manifest(_for_this_machine(content["manifests"]))
        try:
            size = sum(int(layer["size"]) for layer in content["layers"])
        except (KeyError, TypeError, ValueError):
            raise ImageError(f"{self.reference} is no image of a kind that is known here") from None
        return Found(digest, exact, size)

    def fetch(self, found: Found, layout: Path, arrived: Callable[[int], None]) -> None:
        """Bring what is missing into the folder ``layout``; tells how many bytes are there."""
        _drop_broken(layout)
        self._skopeo(
            ["copy", "--quiet", "--retry-times=3"],
            [self.reference.address(found.exact), f"oci:{layout}:image"],
            hours=_FETCH_HOURS,
            watch=lambda: arrived(bytes_in(layout)),
        )

    def _manifest(self, digest: str | None) -> tuple[str, dict[str, Any]]:
        argv = ["inspect", "--raw"]
        text = self._skopeo(argv, [self.reference.address(digest)], hours=_QUESTION_HOURS)
        got = f"sha256:{hashlib.sha256(text).hexdigest()}"
        if digest not in (None, got):
            raise ImageError(f"{self.reference.registry} gave {got} for {digest}; nothing is kept")
        return got, dict(json.loads(text))

    def _skopeo(
        self,
        verb: Sequence[str],
        operands: Sequence[str],
        *,
        hours: float,
        watch: programs.Watch = lambda: None,
    ) -> bytes:
        with authfile(self.reference.registry, self.key) as descriptor:
            file = f"--authfile=/proc/self/fd/{descriptor}"
            try:
                return programs.run(
                    [self.site.skopeo, *verb, file, *operands],
                    hours=hours,
                    environment=dict(self.site.environment),
                    pass_fds=[descriptor],
                    watch=watch,
                )
            except programs.Failed as error:
                raise _in_words(str(error), self.reference, self.key) from error


def _for_this_machine(manifests: Sequence[dict[str, Any]]) -> str:
    wanted = {"os": "linux", "architecture": _ARCHITECTURES.get(platform.machine(), "")}
    for one in manifests:
        if wanted.items() <= one.get("platform", {}).items():
            return str(one["digest"])
    raise ImageError(f"There is no such image for {platform.machine()}")


def _drop_broken(layout: Path) -> None:
    """Leave out what a crash has spoiled or left half: skopeo looks at the names only."""
    for half in layout.glob("oci-put-blob*"):
        half.unlink(missing_ok=True)
    for blob in layout.glob("blobs/sha256/*"):
        with blob.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if digest != blob.name:
            blob.unlink()


def _in_words(said: str, reference: Reference, key: Key | None) -> ImageError:
    text = said.lower()
    if any(words in text for words in ("unauthorized", "authentication required", "denied")):
        if key is None:
            return KeyRefused(f"{reference.registry} gives {reference} to nobody without a key")
        return KeyRefused(
            f"{reference.registry} refuses the key of {key.user} for {reference}. Is it right, has "
            "it expired, and may it read this image?"
        )
    for patterns, words in _WORDS.items():
        if any(pattern in text for pattern in patterns):
            return ImageError(words.format(reference=reference, registry=reference.registry))
    last = (said.strip().splitlines() or ["no reason given"])[-1]
    return ImageError(f"{reference} could not be pulled. skopeo says: {last}")


_WORDS = {
    ("manifest unknown", "name unknown", "not found"): (
        "{registry} has no image {reference}. Look for its name and tag on the registry's page"
    ),
    ("no space left", "quota exceeded"): (
        "There is no room left for {reference}. Make room and run the command again: what has "
        "arrived is kept"
    ),
    ("no such host", "connection refused", "no route", "i/o timeout", "network is unreachable"): (
        "{registry} cannot be reached from this machine. Does the site let compute nodes out, or "
        "does it have a proxy? An administrator knows"
    ),
    ("x509", "tls:", "gave http response"): (
        "{registry} does not show a certificate that this machine trusts. An administrator can "
        "put its authority into /etc/containers/certs.d"
    ),
    ("rejected", "signature"): (
        "{reference} lacks the signature that this site requires in /etc/containers/policy.json"
    ),
}
