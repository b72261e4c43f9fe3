"""A transformer that continues texts byte by byte, and how its weights lie on many devices.

The devices are a grid of two axes. Along "data" they divide the texts of a step, along "model" the
work on each text; every large weight is divided along both, so that no device holds it whole. Of
how they then exchange what they need, XLA takes care.

The layout is that of Megatron-LM (arXiv:1909.08053, section 3) along "model", and of ZeRO's third
stage (arXiv:1910.02054, section 5) along "data".
"""

from typing import Any

import jax
import jax.numpy as jnp
from devices import AXES, LayoutError, grid_shape
from flax import nnx
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as Axes

BYTES = 256
"""The vocabulary: a text needs no tokenizer."""
ROWS = Axes("data", None)
"""Texts of a step, as [text, byte]."""
INTO, OUT_OF = Axes("data", "model"), Axes("model", "data")
_LAYOUT = {
    "to_heads": INTO,
    "up": INTO,
    "to_bytes": INTO,
    "from_heads": OUT_OF,
    "down": OUT_OF,
    "from_bytes": OUT_OF,
}


def grid(model_devices: int) -> Mesh:
    """Return all devices of all processes; ``model_devices`` of them work on the same texts.

    Raises `LayoutError` where they do not divide all.
    """
    shape = grid_shape(model_devices)
    return jax.make_mesh(shape, AXES, axis_types=(AxisType.Auto, AxisType.Auto))


class Block(nnx.Module):
    """Attention to earlier bytes, and two layers for each byte."""

    def __init__(self, width: int, heads: int, numbers: Any, rngs: nnx.Rngs) -> None:
        """Make one with random weights; ``numbers`` are the type that it computes in."""

        def linear(before: int, after: int) -> nnx.Linear:
            return nnx.Linear(before, after, use_bias=False, dtype=numbers, rngs=rngs)

        self.heads = heads
        self.before_attention = nnx.RMSNorm(width, dtype=numbers, rngs=rngs)
        self.to_heads = linear(width, 3 * width)
        self.from_heads = linear(width, width)
        self.before_layers = nnx.RMSNorm(width, dtype=numbers, rngs=rngs)
        self.up = linear(width, 4 * width)
        self.down = linear(4 * width, width)

    def __call__(self, seen: jax.Array) -> jax.Array:
        """Change what is known of each byte: [text, byte, width]."""
        texts, length, width = seen.shape
        # Whole heads lie side by side, so that each device has some of them.
        parts = self.to_heads(self.before_attention(seen))
        parts = parts.reshape(texts, length, self.heads, 3, width // self.heads)
        query, key, value = (parts[:, :, :, part] for part in range(3))
        found = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        seen = seen + self.from_heads(found.reshape(texts, length, width))
        return seen + self.down(jax.nn.gelu(self.up(self.before_layers(seen))))


class Transformer(nnx.Module):
    """A decoder: of each byte it says which comes next."""

    def __init__(
        self, width: int, layers: int, heads: int, length: int, numbers: Any, rngs: nnx.Rngs
    ) -> None:
        """Make one with random weights, for texts of up to ``length`` bytes."""
        self.from_bytes = nnx.Embed(BYTES, width, dtype=numbers, rngs=rngs)
        self.places = nnx.Embed(length, width, dtype=numbers, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, numbers, rngs) for _ in range(layers)])
        self.last = nnx.RMSNorm(width, dtype=numbers, rngs=rngs)
        self.to_bytes = nnx.Linear(width, BYTES, use_bias=False, dtype=numbers, rngs=rngs)

    def __call__(self, texts: jax.Array) -> jax.Array:
        """Return the logits of each next byte: [text, byte, 256]."""
        seen = self.from_bytes(texts) + self.places(jnp.arange(texts.shape[1]))
        for block in self.blocks:
            seen = block(seen)
        return self.to_bytes(self.last(seen)).astype(jnp.float32)


def layout(mesh: Mesh, weights: Any) -> Any:
    """Return the `NamedSharding` of each weight, and of what an optimizer keeps for each.

    Raises `LayoutError` where a size cannot be divided.
    """

    def of(path: tuple[Any, ...], weight: jax.Array) -> NamedSharding:
        names = [getattr(part, "key", None) for part in path]
        axes = next((_LAYOUT[name] for name in names if name in _LAYOUT), Axes())
        if weight.ndim < len(axes):
            axes = Axes()
        for size, axis in zip(weight.shape, axes, strict=False):
            if size % mesh.shape[axis]:
                raise LayoutError(
                    f"{mesh.shape[axis]} devices cannot divide a side of {size} evenly: give "
                    "another width, or another number of model_devices"
                )
        return NamedSharding(mesh, axes)

    return jax.tree_util.tree_map_with_path(of, weights)
