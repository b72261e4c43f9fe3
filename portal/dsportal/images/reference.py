"""An image's name in a registry, such as ``nvcr.io/nvidia/pytorch:24.05-py3``.

The rules are those of the OCI distribution specification, 1.1, "Pulling manifests"; the registry
must be named, as there is none that everybody means.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsportal.images.errors import ImageError

_NAME = re.compile(
    r"(?P<registry>(?:[a-z0-9-]+\.)+[a-z0-9-]+|localhost)(?P<port>:[0-9]{1,5})?"
    r"/(?P<path>[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_LONGEST = 500
_DIGITS = 32
"""Of a digest, in a file's name: with fewer an image could be made whose file has that name."""


@dataclass(frozen=True)
class Reference:
    """A registry, a name there, and which of the images of that name."""

    registry: str
    """With the port, where it is another than HTTPS has."""
    path: str
    tag: str | None
    digest: str | None = None

    def __str__(self) -> str:
        tag = "" if self.tag is None else f":{self.tag}"
        return f"{self.name}{tag}{'' if self.digest is None else f'@{self.digest}'}"

    @property
    def name(self) -> str:
        """Without tag and digest."""
        return f"{self.registry}/{self.path}"

    def address(self, digest: str | None = None) -> str:
        """Return what skopeo calls it; a digest says exactly which image."""
        exact = digest or self.digest
        return f"docker://{self.name}" + (f"@{exact}" if exact else f":{self.tag}")

    @property
    def link(self) -> str:
        """Return where, in a cache for everybody, the name leads to its file: a place for each.

        >>> parse("registry.example:5000/a/b:1.0").link
        'by-name/registry.example@5000/a/b@1.0.sif'
        """
        # A colon would end a path where Apptainer reads several.
        name = f"{self.name}:{self.digest or self.tag}".replace(":", "@")
        return f"by-name/{name}.sif"

    def is_below(self, prefixes: Sequence[str]) -> bool:
        """Tell whether it is of one of these registries, or folders of one."""
        return any(self.name.startswith(f"{prefix.rstrip('/')}/") for prefix in prefixes)

    def file_name(self, digest: str) -> str:
        """Return the name of its file: one for each content, so none is ever replaced."""
        words = [self.path.rpartition("/")[2], self.tag, digest.partition(":")[2][:_DIGITS]]
        return "-".join(word for word in words if word) + ".sif"


def parse(text: str) -> Reference:
    """Read a name as people write it; without tag and digest it is the tag ``latest``.

    Beside a digest a tag says nothing: no registry looks whether it is one of that image.

    >>> parse("docker://nvcr.io/nvidia/pytorch:24.05-py3").tag
    '24.05-py3'
    """
    found = _NAME.fullmatch(text.removeprefix("docker://")) if len(text) < _LONGEST else None
    if found is None:
        raise ImageError(
            f"{text[:_LONGEST]!r} is no image's name. It needs the registry, a path in small "
            "letters and a tag, such as nvcr.io/nvidia/pytorch:24.05-py3"
        )
    tag, digest = found["tag"], found["digest"]
    registry = found["registry"] + (found["port"] or "")
    return Reference(registry, found["path"], None if digest else tag or "latest", digest)
