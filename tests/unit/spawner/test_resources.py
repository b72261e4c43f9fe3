import pytest

from jupyterhub_gpu_slurm.resources import Resources, ResourceShape


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        (0, Resources(gpus=0, cores=2, memory_mb=12 * 1024)),
        (1, Resources(gpus=1, cores=8, memory_mb=48 * 1024)),
        (4, Resources(gpus=4, cores=32, memory_mb=192 * 1024)),
    ],
)
def test_each_gpu_brings_eight_cores_and_48_gb(gpus: int, expected: Resources) -> None:
    assert ResourceShape().resources(gpus) == expected


def test_the_figures_are_settings() -> None:
    shape = ResourceShape(
        cores_per_gpu=10, memory_mb_per_gpu=1000, cores_without_gpu=1, memory_mb_without_gpu=500
    )
    assert shape.resources(2) == Resources(2, 20, 2000)
    assert shape.resources(0) == Resources(0, 1, 500)


@pytest.mark.parametrize(
    ("cores", "memory_mb", "most"),
    [(40, 384 * 1024, 5), (64, 100 * 1024, 2), (7, 384 * 1024, 0), (0, 0, 0), (-8, -1, 0)],
)
def test_how_many_gpus_a_node_has_cores_and_memory_for(
    cores: int, memory_mb: int, most: int
) -> None:
    assert ResourceShape().most_gpus(cores, memory_mb) == most
