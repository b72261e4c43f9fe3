import pytest

from jupyterhub_gpu_slurm.extension import minutes_from


def test_minutes_are_taken() -> None:
    assert minutes_from(b'{"minutes": 30}') == 30


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"30",
        b"[30]",
        b"{}",
        b'{"minutes": "30"}',
        b'{"minutes": 30.0}',
        b'{"minutes": true}',
        b'{"minutes": 0}',
        b'{"minutes": -30}',
        b'{"minutes": 99999999}',
        b'{"minutes": 30, "job_id": 7}',
        b'{"minutes": NaN}',
        b"\xff",
    ],
)
def test_nothing_else_is_taken(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"minutes|JSON|body"):
        minutes_from(body)
