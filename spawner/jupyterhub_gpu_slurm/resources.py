"""The CPU cores and the memory that come with a number of GPUs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """Resources of a session's job on its node. Memory is in MiB, as in Slurm."""

    gpus: int
    cores: int
    memory_mb: int


@dataclass(frozen=True)
class ResourceShape:
    """The site's figures: what each GPU brings, and what a session without GPUs gets.

    Each is 1 at least: to Slurm no memory is all of a node's.
    The defaults are those of the reference cluster: 8 cores and 48 GiB for each GPU.
    """

    cores_per_gpu: int = 8
    memory_mb_per_gpu: int = 48 * 1024
    cores_without_gpu: int = 2
    memory_mb_without_gpu: int = 12 * 1024

    def resources(self, gpus: int) -> Resources:
        """Return what a session with ``gpus`` GPUs asks for."""
        if gpus == 0:
            return Resources(0, self.cores_without_gpu, self.memory_mb_without_gpu)
        return Resources(gpus, gpus * self.cores_per_gpu, gpus * self.memory_mb_per_gpu)

    def most_gpus(self, cores: int, memory_mb: int) -> int:
        """Return for how many GPUs there are cores and memory."""
        return max(0, min(cores // self.cores_per_gpu, memory_mb // self.memory_mb_per_gpu))
