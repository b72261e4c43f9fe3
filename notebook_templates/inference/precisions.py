"""One trained network at three precisions: exported, calibrated, measured.

ONNX Runtime runs fp32 and int8. On a CPU it has no convolution in bf16, so PyTorch runs that one;
on a GPU with TensorRT, TensorRT runs all three and "half" is fp16.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
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

TENSORRT = "TensorrtExecutionProvider"
CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
Run = Callable[[np.ndarray], np.ndarray]  # images (n, channels, height, width) to logits


@dataclass(frozen=True)
class Precision:
    """A network that is ready to run, and what runs it."""

    name: str
    engine: str
    run: Run


@dataclass(frozen=True)
class Speed:
    """What a batch size gives; latencies are those of one batch."""

    batch: int
    images_per_second: float
    median_ms: float
    p95_ms: float


class Calibration(CalibrationDataReader):
    """Images that show the quantiser which values occur, one batch after the other."""

    def __init__(self, images: np.ndarray, batches: int, batch: int) -> None:
        if len(images) < batches * batch:
            raise ValueError(f"{batches} batches of {batch} need more than {len(images)} images")
        self.batches: Iterator[np.ndarray] = iter(np.split(images[: batches * batch], batches))

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next batch, or None after the last."""
        batch = next(self.batches, None)
        return None if batch is None else {"images": batch}


def build(
    network: torch.nn.Module, folder: Path, calibration: Calibration, example: np.ndarray
) -> list[Precision]:
    """Write the network into ``folder`` and open it at fp32, half precision and int8."""
    folder.mkdir(parents=True, exist_ok=True)
    exported, prepared, quantised = (folder / f"{n}.onnx" for n in ("fp32", "prepared", "int8"))
    export(network, exported, example)
    quant_pre_process(str(exported), str(prepared))
    gpu = TENSORRT in onnxruntime.get_available_providers()
    quantize_static(
        str(prepared),
        str(quantised),
        calibration,
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        # TensorRT takes signed values around zero only; a CPU is faster with unsigned ones.
        activation_type=QuantType.QInt8 if gpu else QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        reduce_range=not gpu and saturates(Path("/proc/cpuinfo").read_text()),
        extra_options={"ActivationSymmetric": gpu},
    )
    half = opened("fp16", prepared, {"trt_fp16_enable": True}) if gpu else autocast(network)
    return [opened("fp32", prepared), half, opened("int8", quantised, {"trt_int8_enable": True})]


def saturates(cpuinfo: str) -> bool:
    """Tell from /proc/cpuinfo whether sums of int8 products overflow 16 bits on this processor.

    They do on x86-64 without VNNI, where weights of 7 bits keep the accuracy: ONNX Runtime,
    "Quantize ONNX Models", https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    flags = {
        word for line in cpuinfo.splitlines() if line.startswith("flags") for word in line.split()
    }
    return "avx2" in flags and flags.isdisjoint({"avx512_vnni", "avx_vnni"})


def export(network: torch.nn.Module, path: Path, example: np.ndarray) -> None:
    """Write the network as ONNX, for batches of any size."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    torch.onnx.export(
        network.eval().cpu(),
        (torch.from_numpy(example),),
        str(path),
        input_names=["images"],
        output_names=["logits"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def opened(name: str, path: Path, tensorrt: dict[str, Any] | None = None) -> Precision:
    """Open a network in the fastest engine that is here."""
    there = onnxruntime.get_available_providers()
    providers = [(TENSORRT, tensorrt or {}), (CUDA, {}), (CPU, {})]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(
        str(path), options, providers=[choice for choice in providers if choice[0] in there]
    )
    engine = "ONNX Runtime, " + session.get_providers()[0].removesuffix("ExecutionProvider")
    return Precision(name, engine, lambda images: session.run(None, {"images": images})[0])


def autocast(network: torch.nn.Module) -> Precision:
    """Run the network with PyTorch: bf16 on a CPU, fp16 on a GPU."""
    cuda = torch.cuda.is_available()
    device, number = ("cuda", torch.float16) if cuda else ("cpu", torch.bfloat16)
    network = network.eval().to(device, memory_format=torch.channels_last)

    def run(images: np.ndarray) -> np.ndarray:
        batch = torch.from_numpy(images).to(device, memory_format=torch.channels_last)
        with torch.inference_mode(), torch.autocast(device, number):
            return network(batch).float().cpu().numpy()

    return Precision("fp16" if cuda else "bf16", f"PyTorch, {device}", run)


def accuracy(run: Run, images: np.ndarray, labels: np.ndarray, top: Sequence[int]) -> list[float]:
    """Return, for each of ``top``, the share of images whose label is among so many best."""
    parts = [run(part) for part in np.array_split(images, max(1, len(images) // 100))]
    best = np.argsort(-np.concatenate(parts), axis=1)
    hits = best == np.asarray(labels)[:, np.newaxis]
    return [float(hits[:, :many].any(axis=1).mean()) for many in top]


def speed(run: Run, images: np.ndarray, seconds: float) -> Speed:
    """Run one batch again and again, for so many seconds but at least three times."""
    run(images)  # the first one allocates, and compiles where there is a GPU
    took: list[float] = []
    while len(took) < 3 or sum(took) < seconds:
        started = time.perf_counter()
        run(images)
        took.append(time.perf_counter() - started)
    median, p95 = np.percentile(took, (50, 95))
    rate = len(images) * len(took) / sum(took)
    return Speed(len(images), rate, float(median) * 1e3, float(p95) * 1e3)
