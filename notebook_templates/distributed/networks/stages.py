"""How deep and wide ResNets are, whatever framework builds them.

He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015 (arXiv:1512.03385), table 1.
"""

# Bottlenecks in each of the four stages.
STAGES = {"50": (3, 4, 6, 3), "101": (3, 4, 23, 3), "152": (3, 8, 36, 3)}
WIDTHS = (64, 128, 256, 512)  # channels inside a stage's bottlenecks
EXPANSION = 4  # channels that leave a bottleneck, times its width

# Something to try a training with: learns digits in seconds on one CPU core.
TINY = "tiny"
TINY_STAGES, TINY_WIDTHS = (1, 1, 1, 1), (8, 16, 32, 64)

MODELS = (*STAGES, TINY)


def stages_of(model: str) -> list[tuple[int, int]]:
    """Return the number of bottlenecks and their width, for each stage of one of `MODELS`."""
    if model == TINY:
        return list(zip(TINY_STAGES, TINY_WIDTHS, strict=True))
    return list(zip(STAGES[model], WIDTHS, strict=True))


def strides_of(stride: int, is_v1: bool) -> tuple[int, int]:
    """Return the strides of a bottleneck's first 1x1 and of its 3x3 convolution.

    The paper's own network has the stride in the first (v1), most programs since in the second.
    """
    return (stride, 1) if is_v1 else (1, stride)
