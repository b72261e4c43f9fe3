"""The networks of the papers' tables by name, whatever builds them."""

SIZES = {
    "alexnet": 224,
    "googlenet": 224,
    "inception3": 299,
    "inception4": 299,
    "resnet50": 224,
    "resnet50_v1": 224,
    "resnet101": 224,
    "resnet152": 224,
    "vgg16": 224,
    "vgg19": 224,
    # Something to try a measurement with.
    "tiny": 32,
}
"""Height and width in pixels that each was made for. ResNets are v1.5, but for the one named v1: in
that a bottleneck's stride is in its first 1x1 convolution, and not in its 3x3."""

RESNETS = {
    "resnet50": "50",
    "resnet50_v1": "50",
    "resnet101": "101",
    "resnet152": "152",
    "tiny": "tiny",
}
"""Those that are ResNets, and what `stages` calls them."""

V1 = ("resnet50_v1",)

BUILT_WITH = {
    "pytorch": tuple(SIZES),
    "tensorflow": (*RESNETS, "inception3", "vgg16"),
    "mxnet": (*RESNETS, "alexnet", "inception3", "vgg16"),
}
"""What each framework trains here: the ResNets, and what its own model zoo has of the others."""

PRECISIONS = {"fp32": 1, "tf32": 1, "bf16": 2, "fp16": 2}
"""How much larger a batch is than with fp32, as the papers have it."""

PAPERS = ("alexnet", "googlenet", "inception3", "resnet50", "resnet152", "vgg16")
