"""The networks of the papers' tables by name, whatever builds them."""

SIZES = {
    "alexnet": 224,
    "googlenet": 224,
    "inception3": 299,
    "resnet50": 224,
    "resnet152": 224,
    "vgg16": 224,
    # Something to try a measurement with.
    "tiny": 32,
}
"""Height and width in pixels that each was made for."""

PRECISIONS = {"fp32": 1, "tf32": 1, "bf16": 2, "fp16": 2}
"""How much larger a batch is than with fp32, as the papers have it."""

PAPERS = ("alexnet", "googlenet", "inception3", "resnet50", "resnet152", "vgg16")
