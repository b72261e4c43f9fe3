"""ResNet v1.5 in Keras: the network of resnet.py, for TensorFlow.

He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015 (arXiv:1512.03385), table 1;
the stride of a bottleneck is in its 3x3 convolution.
"""

import keras
from keras import layers

from networks.stages import EXPANSION, stages_of, strides_of


def build(
    model: str, classes: int, size: int, channels: int = 3, is_v1: bool = False
) -> keras.Model:
    """Build one of `stages.MODELS` for images (n, size, size, channels); it gives logits."""
    stages = stages_of(model)
    images = keras.Input((size, size, channels))
    x = layers.ReLU()(normalised(convolution(images, stages[0][1], 7, stride=2)))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    for stage, (count, width) in enumerate(stages):
        for block in range(count):
            x = bottleneck(x, width, 2 if stage > 0 and block == 0 else 1, is_v1)
    x = layers.GlobalAveragePooling2D()(x)
    # Of mixed precisions, the loss takes the longer one.
    start = keras.initializers.RandomNormal(stddev=0.01)
    return keras.Model(images, layers.Dense(classes, kernel_initializer=start, dtype="float32")(x))


def bottleneck(
    images: keras.KerasTensor, width: int, stride: int, is_v1: bool
) -> keras.KerasTensor:
    """1x1 to few channels, 3x3, 1x1 to many; added to what came in."""
    outputs = width * EXPANSION
    strides = strides_of(stride, is_v1)
    x = layers.ReLU()(normalised(convolution(images, width, 1, strides[0])))
    x = layers.ReLU()(normalised(convolution(x, width, 3, strides[1])))
    # A block that begins as the identity trains more easily (Goyal et al. 2017, 5.1).
    x = normalised(convolution(x, outputs, 1), start="zeros")
    if stride != 1 or images.shape[-1] != outputs:
        images = normalised(convolution(images, outputs, 1, stride))
    return layers.ReLU()(layers.Add()([x, images]))


def convolution(
    images: keras.KerasTensor, outputs: int, size: int, stride: int = 1
) -> keras.KerasTensor:
    """Keep the images' size, up to the stride; without a bias (He et al. 2015, 1502.01852)."""
    start = keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")
    return layers.Conv2D(
        outputs, size, stride, padding="same", use_bias=False, kernel_initializer=start
    )(images)


def normalised(images: keras.KerasTensor, start: str = "ones") -> keras.KerasTensor:
    """Normalise each channel over the batch of one process."""
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, gamma_initializer=start)(images)
