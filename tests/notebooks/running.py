"""Notebooks run to the end with papermill, in a kernel of the deployment's environments."""

import hashlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import IO

import bootstrap

from tests.instance import ROOT

Run = Callable[..., subprocess.CompletedProcess[str]]
TRAINING = ROOT / "notebook_templates" / "distributed"
ENVIRONMENTS = Path("/opt/data-scientist-portal/environments")

log = logging.getLogger(__name__)
_SRUN_SECONDS = 180
_LAST_SECONDS = 30

_FEATURES = next(
    line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")
)
_COMPILED = bootstrap.CACHE / "compiled" / hashlib.sha256(_FEATURES.encode()).hexdigest()[:12]
SPARING = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "TF_NUM_INTRAOP_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    # What JAX has compiled for this kind of processor: most of the time of so short trainings.
    "JAX_COMPILATION_CACHE_DIR": str(_COMPILED),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
}
"""Several notebooks run side by side: threads that wait for each other would take most of it."""


def framework_python(framework: str) -> Path:
    """Find a framework's interpreter; ``PORTAL_TENSORFLOW_PYTHON`` and so on name another one."""
    if is_named(framework):
        return Path(os.environ[_name_of(framework)])
    environment, _ = bootstrap.recipe(f"kernel-{framework}", ENVIRONMENTS)
    assert environment.exists(), f"{environment} is missing; deploy/up test makes it"
    return environment / "bin/python"


def is_named(framework: str) -> bool:
    """Say whether another interpreter is named: on a machine with GPUs, which no fork may share."""
    return bool(os.environ.get(_name_of(framework)))


def _name_of(framework: str) -> str:
    return f"PORTAL_{framework.upper()}_PYTHON"


def kernel_argv(python: Path | None) -> list[str]:
    """Say how a kernel is started: with an interpreter of Python, or without one R."""
    if python is None:
        return ["/usr/bin/R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"]
    return [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def run(kernel: str, argv: list[str], notebook: Path, *, home: Path, **parameters: object) -> Path:
    """Run all cells with papermill in the kernel; return the notebook with its outputs.

    None of them is red, as JupyterLab shows what a cell writes to its standard error.
    """
    return run_in(notebook.parent, kernel, argv, notebook, home=home, **parameters)


def run_in(
    folder: Path, kernel: str, argv: list[str], notebook: Path, *, home: Path, **parameters: object
) -> Path:
    """Run a notebook that may be elsewhere in this folder, as `run` does."""
    # The kernel's environment has no papermill; the tests' has, and starts this kernel.
    specs = home / "share" / "jupyter" / "kernels" / kernel
    specs.mkdir(parents=True)
    spec = {
        "argv": argv,
        "display_name": "under test",
        "language": "R" if "R" in argv[0] else "python",
    }
    (specs / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    done = home / "done.ipynb"
    papermill = [sys.executable, "-m", "papermill", "--no-progress-bar", "--kernel", kernel]
    # Frameworks are imported by five kernels beside this one.
    papermill += ["--start-timeout", "300"]
    papermill += ["--cwd", str(folder), "--parameters_yaml", json.dumps(parameters)]
    subprocess.run(
        [*papermill, str(notebook), str(done)],
        check=True,
        capture_output=True,
        text=True,
        timeout=900,
        env={
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "JUPYTER_DATA_DIR": str(home / "share" / "jupyter"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **SPARING,
        },
    )
    red = written_to(done, "stderr")
    assert not red, red
    return done


def written_to(notebook: Path, stream: str) -> str:
    """Return what all cells of a notebook that was run wrote to "stdout" or "stderr"."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join("".join(one["text"]) for one in outputs if one.get("name") == stream)


def assert_drawn_live(home: Path, by: str = "runs.train_here(") -> None:
    """See that a training in the session drew one picture, again and again, and filled one bar."""
    cells = json.loads((home / "done.ipynb").read_text(encoding="utf-8"))["cells"]
    (training,) = (cell for cell in cells if by in "".join(cell["source"]))
    shown = [output.get("data", {}) for output in training["outputs"]]
    assert sum("image/png" in data for data in shown) == 1
    (bar,) = ("".join(data["text/html"]) for data in shown if "text/html" in data)
    whole, done = re.findall(r'max="(\d+)" value="(\d+)"', bar)[0]
    assert whole == done, bar


def printed_by(notebook: Path, python: Path, home: Path, parameters: Mapping[str, object]) -> str:
    """Run all cells in a Python kernel; return the standard output of all."""
    done = run("pytorch", kernel_argv(python), notebook, home=home, **parameters)
    return written_to(done, "stdout")


def said_by(
    argv: Sequence[str | Path],
    variables: Mapping[str, str] = MappingProxyType({}),
    cwd: Path | None = None,
) -> str:
    """Run a program to its end, however it ends; return what it printed, its errors after that."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return done.stdout + done.stderr


def as_by_srun(argv: list[str], processes: int, **variables: str) -> list[int]:
    """Run a program as srun starts it on nodes with one process each; return what they end with.

    Where one does not end well, what each has said is logged, which a test that fails shows. Where
    one does not end, it fails with that, and with where each is.
    """
    with ExitStack() as files:
        said = [files.enter_context(TemporaryFile()) for _ in range(processes)]
        with started_by_srun(argv, processes, said, **variables) as running:
            try:
                codes = [one.wait(_SRUN_SECONDS) for one in running]
            except subprocess.TimeoutExpired as error:
                # Python's faulthandler says where it is.
                for one in running:
                    one.send_signal(signal.SIGABRT)
                for one in running:
                    with suppress(subprocess.TimeoutExpired):
                        one.wait(_LAST_SECONDS)
                for note in _endings(running, said):
                    error.add_note(note)
                raise
            if any(codes):
                log.warning("\n".join(_endings(running, said)))
            return codes


def _endings(running: Sequence[subprocess.Popen[bytes]], said: Sequence[IO[bytes]]) -> list[str]:
    """Say how each process has ended, and what it has said."""
    notes = []
    for rank, (one, file) in enumerate(zip(running, said, strict=True)):
        file.seek(0)
        words = file.read().decode(errors="replace")
        notes.append(f"rank {rank}, ended with {one.returncode}:\n{words}")
    return notes


@contextmanager
def started_by_srun(
    argv: list[str], processes: int, said: Sequence[IO[bytes]] = (), **variables: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start a program as srun does on nodes with one process each; kill what is left of it.

    ``said``: for each process where to write what it says.
    """
    shared = {
        "SLURM_NTASKS": str(processes),
        "SLURM_NTASKS_PER_NODE": "1",
        "SLURM_NNODES": str(processes),
        "SLURM_LOCALID": "0",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_TASKS_PER_NODE": f"1(x{processes})",
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
        "SLURM_JOB_ID": str(os.getpid()),
        "PYTHONFAULTHANDLER": "1",
        **variables,
    }
    running = [
        subprocess.Popen(
            argv,
            cwd=TRAINING,
            env={**os.environ, **shared, "SLURM_PROCID": str(rank), "SLURM_NODEID": str(rank)},
            stdout=said[rank] if said else subprocess.DEVNULL,
            stderr=subprocess.STDOUT if said else subprocess.DEVNULL,
        )
        for rank in range(processes)
    ]
    try:
        yield running
    finally:
        for one in running:
            one.kill()
            one.wait()
