"""The site's settings for images: one file on each compute node, which root writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from dsportal.images.errors import ImageError


@dataclass(frozen=True)
class Site:
    """Content of the site's image settings file."""

    apptainer: str
    skopeo: str = "/usr/bin/skopeo"
    own_folder: str = "images"
    """In a user's home; empty where users have no images of their own."""
    cache: str = ""
    """The folder with the images for everybody; empty for none."""
    cache_account: str = ""
    """The account that alone writes into it."""
    cache_gb: int = 0
    """What it may hold, in GB; 0 for all that fits."""
    cache_program: str = ""
    """What that account runs for users, through sudo."""
    shared: tuple[str, ...] = ()
    """From which registries, or folders of one, images go there."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What skopeo needs to come out, such as HTTPS_PROXY."""


def load(file: Path) -> Site:
    """Read it; raises `ImageError`."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        unknown = set(content) - {one.name for one in fields(Site)}
        if unknown:
            raise ImageError(f"{file}: what is {', '.join(sorted(unknown))}?")
        return Site(**content | {"shared": tuple(content.get("shared", ()))})
    except OSError as error:
        raise ImageError(
            f"{file}: {error.strerror}. An administrator must deploy images"
        ) from error
    except (TypeError, ValueError) as error:
        raise ImageError(f"{file} is damaged: {error}. An administrator must look at it") from error
