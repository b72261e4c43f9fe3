"""One trained network, made ready to be asked in several precisions.

An engine takes images of shape (n, channels, height, width) as float32 and gives logits of shape
(n, classes). ``fp32`` and ``int8`` run in ONNX Runtime, on a GPU where it finds one; the half
precision (``fp16`` on a GPU, ``bf16`` on a CPU) in PyTorch: ONNX Runtime has no bf16 on CPUs.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

Engine = Callable[[np.ndarray], np.ndarray]
# The first that is there is taken. TensorRT and CUDA come with onnxruntime-gpu.
PROVIDERS = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider")
INPUT = "images"


def provider() -> str:
    """Return what ONNX Runtime runs on."""
    there = onnxruntime.get_available_providers()
    return next(name for name in PROVIDERS if name in there)


def export(model: nn.Module, example: torch.Tensor, file: Path) -> None:
    """Write a network as ONNX; the number of images may change from call to call."""
    many = {INPUT: {0: torch.export.Dim("batch", min=1, max=4096)}}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    torch.onnx.export(
        model.eval().cpu(),
        (example,),
        str(file),
        input_names=[INPUT],
        dynamo=True,
        dynamic_shapes=(many[INPUT],),
        external_data=False,
        verbose=False,
    )


class Calibration(CalibrationDataReader):
    """Images that show which values the layers see."""

    def __init__(self, batches: Iterator[np.ndarray]) -> None:
        self._batches = batches

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Give the next batch, ``None`` after the last."""
        batch = next(self._batches, None)
        return None if batch is None else {INPUT: batch}


def quantize(fp32: Path, int8: Path, images: np.ndarray, batches: int, batch: int) -> None:
    """Write the network with weights and activations of 8 bits.

    The scales come from running ``batches`` batches of ``batch`` images through the network once:
    post-training quantisation, per channel; nothing is trained again.
    """
    if len(images) < batches * batch:
        raise ValueError(f"{batches} x {batch} images to calibrate with, but only {len(images)}")
    prepared = fp32.with_name("prepared.onnx")
    quant_pre_process(str(fp32), str(prepared))
    parts = iter(np.split(images[: batches * batch], batches))
    quantize_static(
        str(prepared),
        str(int8),
        Calibration(parts),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )


def onnx_engine(file: Path, threads: int) -> Engine:
    """Load an ONNX file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), options, providers=[provider()])

    def ask(images: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, {INPUT: images})[0])

    return ask


def half_engine(model: nn.Module) -> tuple[str, Engine]:
    """Return the half precision's name on this machine, and the network in it."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name, numbers = ("fp16", torch.float16) if device.type == "cuda" else ("bf16", torch.bfloat16)
    model = model.eval().to(device, memory_format=torch.channels_last)

    @torch.inference_mode()
    def ask(images: np.ndarray) -> np.ndarray:
        there = torch.from_numpy(images).to(device, memory_format=torch.channels_last)
        with torch.autocast(device.type, numbers):
            return np.asarray(model(there).float().cpu().numpy())

    return name, ask


@dataclass(frozen=True)
class Speed:
    """How fast an engine answers for one size of batch."""

    batch: int
    images_per_second: float
    latency_ms: float
    """The median time of one batch."""


def speed(engine: Engine, images: np.ndarray, batch: int, seconds: float) -> Speed:
    """Ask again and again for so many seconds, after a few that do not count."""
    some = np.ascontiguousarray(images[np.arange(batch) % len(images)])
    for _ in range(3):
        engine(some)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        engine(some)
        times.append(time.perf_counter() - began)
    return Speed(batch, batch * len(times) / sum(times), 1000 * float(np.median(times)))


def accuracy(engine: Engine, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return the shares of images whose label is the first guess, and among the first five."""
    guesses = [np.argsort(-engine(part), axis=1)[:, :5] for part in np.array_split(images, 20)]
    right: Any = np.concatenate(guesses) == labels[:, None]
    return float(right[:, 0].mean()), float(right.any(axis=1).mean())
