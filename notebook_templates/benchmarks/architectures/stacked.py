"""AlexNet, VGG-16 and VGG-19: convolutions one after the other, and three large layers at the end.

Krizhevsky: One weird trick for parallelizing convolutional neural networks, 2014 (arXiv:1404.5997),
for AlexNet on one device, 61,100,840 parameters; Simonyan, Zisserman: Very Deep Convolutional
Networks, 2014 (arXiv:1409.1556), table 1, columns D and E, for VGG-16 and VGG-19, 138,357,544 and
143,667,240 parameters.
"""

from torch import nn

# Convolutions of each of the five stages, and their channels.
VGG = {
    "vgg16": ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)),
    "vgg19": ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)),
}


def alexnet(classes: int, channels: int) -> nn.Module:
    """Build AlexNet for images of so many channels, 224 pixels wide."""
    return nn.Sequential(
        *_convolution(channels, 64, 11, stride=4, padding=2),
        nn.MaxPool2d(3, 2),
        *_convolution(64, 192, 5, padding=2),
        nn.MaxPool2d(3, 2),
        *_convolution(192, 384, 3),
        *_convolution(384, 256, 3),
        *_convolution(256, 256, 3),
        nn.MaxPool2d(3, 2),
        *_end(256, 6, classes),
    )


def vgg(model: str, classes: int, channels: int) -> nn.Module:
    """Build one of `VGG` for images of so many channels, 224 pixels wide."""
    layers: list[nn.Module] = []
    inputs = channels
    for count, outputs in VGG[model]:
        for _ in range(count):
            layers += _convolution(inputs, outputs, 3)
            inputs = outputs
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, *_end(inputs, 7, classes))


def _convolution(
    inputs: int, outputs: int, size: int, stride: int = 1, padding: int = 1
) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, size, stride, padding), nn.ReLU(inplace=True)]


def _end(inputs: int, width: int, classes: int) -> list[nn.Module]:
    return [
        nn.AdaptiveAvgPool2d(width),
        nn.Flatten(),
        nn.Linear(inputs * width**2, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(4096, classes),
    ]
