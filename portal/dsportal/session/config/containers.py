"""What the hub says to a session of images: which there are, and how they run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsportal.session.config.values import OrdersError, objects, text_or_none, texts, texts_by_name

_KEYS = {"apptainer", "binds", "images", "own_images"}


@dataclass(frozen=True)
class ImageOrder:
    """An image whose kernels are offered."""

    title: str
    path: str


@dataclass(frozen=True)
class ContainerOrders:
    """What runs in images."""

    apptainer: str | None = None
    """The program; ``None`` where there are no containers."""
    images: Mapping[str, ImageOrder] = field(default_factory=dict)
    """The site's, by their names."""
    own_images: str | None = None
    """The folder of the home with the user's own; ``None`` where these are not allowed."""
    binds: tuple[str, ...] = ()
    """What images see besides the home and the session's folders."""


def container_orders(key: str, given: Any) -> ContainerOrders:
    """Read them. Raises `OrdersError`."""
    if not isinstance(given, dict) or not set(given) <= _KEYS:
        raise OrdersError(f"{key}: not an object with {', '.join(sorted(_KEYS))}")
    images = objects("images", given)
    return ContainerOrders(
        apptainer=text_or_none(f"{key}.apptainer", given.get("apptainer")),
        images={name: _image(f"{key}.images.{name}", image) for name, image in images.items()},
        own_images=text_or_none(f"{key}.own_images", given.get("own_images")),
        binds=texts(f"{key}.binds", given.get("binds", [])),
    )


def _image(key: str, value: Any) -> ImageOrder:
    read = texts_by_name(key, value)
    if set(read) != {"title", "path"}:
        raise OrdersError(f"{key}: not an object with path, title")
    return ImageOrder(**read)
