"""One trained network at three precisions: exported, calibrated, measured.

All run on the same device. On a GPU with TensorRT, TensorRT runs fp32, fp16 and int8. Without it,
CUDA's engine of ONNX Runtime runs fp32 where it works, PyTorch fp16, and int8 is a row that says
what is missing: no other engine computes convolutions with int8 there. On a CPU, ONNX Runtime runs
fp32 and int8, and PyTorch bf16, which ONNX Runtime has no convolution for.
"""

import copy
import hashlib
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
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

# From Ampere on TensorRT takes TF32 for fp32, and ONNX Runtime has no option against it
# (microsoft/onnxruntime#26029).
os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")

TENSORRT = "TensorrtExecutionProvider"
CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
BATCH = "batch"  # the name of the size that changes, in ONNX
Run = Callable[[np.ndarray], np.ndarray]  # images (n, channels, height, width) to logits


@dataclass(frozen=True)
class Precision:
    """A network that is ready to run, and what runs it."""

    name: str
    engine: str
    run: Run


@dataclass(frozen=True)
class Missing:
    """A precision that cannot be had on this device."""

    name: str
    lacking: str
    """What is missing, and what was said of it."""


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


def on_gpu() -> bool:
    """Say whether there is a GPU; all precisions run there then."""
    return torch.cuda.is_available()


def names(is_on_gpu: bool) -> tuple[str, str, str]:
    """Return the precisions that there are on a device, or that are said to be missing."""
    return "fp32", "fp16" if is_on_gpu else "bf16", "int8"


def build(
    network: torch.nn.Module, folder: Path, calibration: Calibration, example: np.ndarray
) -> list[Precision | Missing]:
    """Write the network into ``folder`` and open it at fp32, half precision and int8."""
    folder.mkdir(parents=True, exist_ok=True)
    exported, prepared, quantised = (folder / f"{n}.onnx" for n in ("fp32", "prepared", "int8"))
    with without_warnings():
        export(network, exported, example)
        quant_pre_process(str(exported), str(prepared))
    is_on_gpu = on_gpu()
    failed = {
        provider: tried(provider, prepared, example) for provider in (TENSORRT, CUDA) if is_on_gpu
    }
    has_tensorrt = is_on_gpu and not failed[TENSORRT]
    if not is_on_gpu or has_tensorrt:
        with without_warnings():
            quantise(prepared, quantised, calibration, for_tensorrt=has_tensorrt)
    if not is_on_gpu:
        return [opened("fp32", prepared, CPU), half(network), opened("int8", quantised, CPU)]
    if has_tensorrt:
        # Of int8 it may not have what it has of the others.
        refused = tried(TENSORRT, quantised, example, {"trt_int8_enable": True})
        return [
            opened("fp32", prepared, TENSORRT),
            opened("fp16", prepared, TENSORRT, {"trt_fp16_enable": True}),
            Missing("int8", f"TensorRT does not take the quantised network: {refused}")
            if refused
            else opened("int8", quantised, TENSORRT, {"trt_int8_enable": True}),
        ]
    lacking = f"TensorRT cannot be used: {failed[TENSORRT]}"
    exact = exactly(network) if failed[CUDA] else opened("fp32", prepared, CUDA)
    return [exact, half(network), Missing("int8", lacking)]


def tried(
    provider: str, path: Path, example: np.ndarray, more: dict[str, Any] | None = None
) -> str:
    """Open a network with one provider and nothing else; return what is wrong, empty for nothing.

    `get_available_providers` says what was compiled in. Whether the libraries are there (cuDNN,
    TensorRT), for the right CUDA, shows a session; whether they have code for this GPU, a run.
    """
    if provider not in onnxruntime.get_available_providers():
        return f"ONNX Runtime was built without {provider}"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        session = session_by(provider, path, options, [(provider, more or {})])
        # TensorRT would build an engine first.
        if provider != TENSORRT:
            session.run(None, {"images": example})
    # ONNX Runtime's errors have no class of their own that is public.
    except Exception as error:  # noqa: BLE001
        return str(error).splitlines()[0]
    return ""


def session_by(provider: str, path: Path, options: Any, providers: list[Any]) -> Any:
    """Open a network with ``providers``, the first of which is named; raise RuntimeError else.

    Without `enable_fallback=0` another would be tried, and compute under this one's name.
    """
    session = onnxruntime.InferenceSession(
        str(path), options, providers=providers, enable_fallback=0
    )
    if (there := session.get_providers()[0]) != provider:
        raise RuntimeError(f"{there} was taken in the place of {provider}: a library is missing")
    return session


def quantise(
    prepared: Path, quantised: Path, calibration: Calibration, *, for_tensorrt: bool
) -> None:
    """Write the network at int8, calibrated."""
    quantize_static(
        str(prepared),
        str(quantised),
        calibration,
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        # TensorRT takes signed values around zero only; a CPU is faster with unsigned ones.
        activation_type=QuantType.QInt8 if for_tensorrt else QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        reduce_range=not for_tensorrt and saturates(Path("/proc/cpuinfo").read_text()),
        extra_options={"ActivationSymmetric": for_tensorrt},
    )


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
    torch.onnx.export(
        network.eval().cpu(),
        (torch.from_numpy(example),),
        str(path),
        input_names=["images"],
        output_names=["logits"],
        dynamic_shapes=({0: torch.export.Dim(BATCH)},),
        dynamo=True,
        external_data=False,
        verbose=False,
    )


@contextmanager
def without_warnings() -> Iterator[None]:
    """Leave out what PyTorch and ONNX Runtime warn of although nothing is wrong."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    root = logging.getLogger()
    root.addFilter(is_no_vector)
    try:
        with warnings.catch_warnings():
            # PyTorch 2.13 uses it itself, where it copies what it exports.
            warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
            yield
    finally:
        root.removeFilter(is_no_vector)


def is_no_vector(record: logging.LogRecord) -> bool:
    """Say whether a line of the log is another than ONNX Runtime's on a vector.

    A layer norm's vectors have one scale each, where a convolution has one for each channel.
    """
    return "is out-of-range for weight" not in record.getMessage()


class OnnxNetwork:
    """A network in ONNX Runtime; images and logits are bound to the device, and not made anew."""

    def __init__(
        self, path: Path, provider: str, more: dict[str, Any] | None = None, *, is_fixed: bool
    ) -> None:
        """Open it; ``is_fixed``: with a session for each batch size, as TensorRT builds engines."""
        self._path, self._provider, self._more = path, provider, more or {}
        self._is_fixed = is_fixed
        self._device = "cpu" if provider == CPU else "cuda"
        self._sessions: dict[int, Any] = {}
        self._bound: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def session(self, batch: int) -> Any:
        """Return the session for a batch size."""
        key = batch if self._is_fixed else 0
        if key not in self._sessions:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = torch.get_num_threads()
            if self._is_fixed:
                options.add_free_dimension_override_by_name(BATCH, batch)
            providers = self._providers(batch)
            self._sessions[key] = session_by(self._provider, self._path, options, providers)
        return self._sessions[key]

    def _providers(self, batch: int) -> list[Any]:
        if self._provider == CPU:
            return [CPU]
        if self._provider != TENSORRT:
            return [(self._provider, self._more)]
        # A kept engine is found by the network's names, whatever its weights and its batch are
        # (microsoft/onnxruntime#32254).
        more = {**self._more, "trt_engine_cache_prefix": f"{self._digest}-{batch}-no-tf32"}
        # What TensorRT has no way for, CUDA's engine computes on the same device.
        return [(self._provider, more), CUDA]

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self._path.read_bytes()).hexdigest()[:16]

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Run a batch: to the device and back."""
        session = self.session(len(images))
        if images.shape not in self._bound:
            # On a CPU a value is its array, not a copy: the next batch would change the caller's.
            there = onnxruntime.OrtValue.ortvalue_from_numpy(images.copy(), self._device, 0)
            binding = session.io_binding()
            binding.bind_ortvalue_input("images", there)
            binding.bind_output("logits", self._device)
            self._bound[images.shape] = there, binding
        there, binding = self._bound[images.shape]
        there.update_inplace(np.ascontiguousarray(images))
        session.run_with_iobinding(binding)
        return np.array(binding.copy_outputs_to_cpu()[0])


def opened(
    name: str, path: Path, provider: str, tensorrt: dict[str, Any] | None = None
) -> Precision:
    """Open a network with a provider that `tried` found to work."""
    more: dict[str, Any] = {}
    if provider == TENSORRT:
        # Building an engine takes minutes: the next run finds it.
        cache = str(path.parent / f"tensorrt-{name}")
        more = {"trt_engine_cache_enable": True, "trt_engine_cache_path": cache}
        more |= {"trt_timing_cache_enable": True, "trt_timing_cache_path": cache}
        more |= tensorrt or {}
    elif provider == CUDA:
        more = {"use_tf32": 0}
    run = OnnxNetwork(path, provider, more, is_fixed=provider == TENSORRT)
    engine = f"ONNX Runtime, {provider.removesuffix('ExecutionProvider')}"
    return Precision(name, engine, run)


def exactly(network: torch.nn.Module) -> Precision:
    """Run the network on a GPU with PyTorch at fp32, without TF32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return by_pytorch("fp32", network, torch.float32)


def half(network: torch.nn.Module) -> Precision:
    """Run the network with PyTorch: bf16 on a CPU, fp16 on a GPU."""
    if on_gpu():
        return by_pytorch("fp16", network, torch.float16)
    return by_pytorch("bf16", network, torch.bfloat16)


def by_pytorch(name: str, network: torch.nn.Module, number: torch.dtype) -> Precision:
    """Run the network with PyTorch on the device that there is."""
    if on_gpu():
        return Precision(name, "PyTorch, cuda", CapturedNetwork(network, number))
    network = network.eval().to(memory_format=torch.channels_last)

    def run(images: np.ndarray) -> np.ndarray:
        batch = torch.from_numpy(images).to(memory_format=torch.channels_last)
        with torch.inference_mode(), torch.autocast("cpu", number):
            return np.asarray(network(batch).float().numpy())

    return Precision(name, "PyTorch, cpu", run)


@dataclass(frozen=True)
class CapturedBatch:
    """A CUDA graph, with the tensors that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    pinned: torch.Tensor
    """On the host, from which copies to the GPU are fastest."""
    batch: torch.Tensor
    logits: torch.Tensor


class CapturedNetwork:
    """A network on a GPU as CUDA graphs, one for each shape of a batch.

    Launched one by one from Python, the kernels of a small batch take longer to launch than to run.
    """

    def __init__(self, network: torch.nn.Module, number: torch.dtype) -> None:
        """Take a copy to the GPU whose weights are ``number``; what is returned is fp32."""
        there = copy.deepcopy(network).eval().to("cuda", number)
        self._network = there.to(memory_format=torch.channels_last)
        self._number = number
        self._captured: dict[tuple[int, ...], CapturedBatch] = {}

    @torch.inference_mode()
    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Run a batch: to the device and back."""
        if images.shape not in self._captured:
            self._captured[images.shape] = self._capture(images.shape)
        captured = self._captured[images.shape]
        captured.pinned.copy_(torch.from_numpy(images))
        captured.batch.copy_(captured.pinned, non_blocking=True)
        captured.graph.replay()
        return np.asarray(captured.logits.cpu().numpy())

    def _capture(self, shape: tuple[int, ...]) -> CapturedBatch:
        pinned = torch.empty(shape, pin_memory=True)
        batch = pinned.cuda()

        def run() -> torch.Tensor:
            there = batch.to(self._number).to(memory_format=torch.channels_last)
            return torch.as_tensor(self._network(there).float())

        # Before: what a first run allocates, and the choice of algorithms, cannot be captured.
        # https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(3):
                run()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = run()
        return CapturedBatch(graph, pinned, batch, logits)


def accuracy(run: Run, images: np.ndarray, labels: np.ndarray, top: Sequence[int]) -> list[float]:
    """Return, for each of ``top``, the share of images whose label is among so many best."""
    parts = [run(part) for part in np.array_split(images, max(1, len(images) // 100))]
    return [found / len(labels) for found in hits(np.concatenate(parts), labels, top)]


def hits(logits: np.ndarray, labels: np.ndarray, top: Sequence[int]) -> list[int]:
    """Count, for each of ``top``, the images whose label is among so many best."""
    best = np.argsort(-logits, axis=1)
    is_hit = best == np.asarray(labels)[:, np.newaxis]
    return [int(is_hit[:, :many].any(axis=1).sum()) for many in top]


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
