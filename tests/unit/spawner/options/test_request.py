from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterhub_gpu_slurm.errors import BadOption
from jupyterhub_gpu_slurm.options.request import SessionRequest, parse, single_values


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, SessionRequest()),
        ({"gpus": 0}, SessionRequest(gpus=0)),
        ({"gpus": "2"}, SessionRequest(gpus=2)),
        ({"gpus": " 2 ", "hours": " 8"}, SessionRequest(gpus=2, time=timedelta(hours=8))),
        ({"hours": 8}, SessionRequest(time=timedelta(hours=8))),
        ({"hours": "0.5"}, SessionRequest(time=timedelta(minutes=30))),
        ({"hours": 0.001}, SessionRequest(time=timedelta(minutes=1))),
        # Never less than was asked for: a partition that allows 12 hours must not take these.
        ({"hours": 12.0001}, SessionRequest(time=timedelta(minutes=721))),
        ({"hours": "8.333333"}, SessionRequest(time=timedelta(minutes=500))),
        ({"hours": "0.016667"}, SessionRequest(time=timedelta(minutes=1))),
        ({"partition": "sxm2"}, SessionRequest(partition="sxm2")),
        ({"partition": ""}, SessionRequest()),
        ({"image": "ngc-2610"}, SessionRequest(image="ngc-2610")),
        ({"image": ""}, SessionRequest()),
        ({"gpu_type": "a100"}, SessionRequest(gpu_type="a100")),
        ({"gpu_type": "a100_1g.5gb"}, SessionRequest(gpu_type="a100_1g.5gb")),
        ({"gpu_type": ""}, SessionRequest()),
        (
            {"account": "physics", "qos": "high", "reservation": "course", "constraint": "nvlink"},
            SessionRequest(
                account="physics", qos="high", reservation="course", constraint="nvlink"
            ),
        ),
        ({"account": "", "qos": None}, SessionRequest()),
        ({"gpus": None, "hours": None, "partition": None}, SessionRequest()),
    ],
)
def test_sound_options_are_read(options: dict[str, object], expected: SessionRequest) -> None:
    assert parse(options) == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"gpus": -1}, "-1"),
        ({"gpus": "-1"}, "-1"),
        ({"gpus": 1.5}, "1.5"),
        ({"gpus": True}, "True"),
        ({"gpus": "two"}, "two"),
        # What is sent is kept as it is.
        ({"gpus": " " * 1000 + "1"}, "whole number"),
        ({"hours": "1" + " " * 1000}, "hours"),
        ({"gpus": "1\n#SBATCH --gres=gpu:8"}, "whole number"),
        ({"gpus": "٣"}, "whole number"),
        ({"gpus": [1]}, "[1]"),
        ({"gpus": 10**9}, "whole number"),
        ({"hours": 0}, "hours"),
        ({"hours": -1}, "-1"),
        ({"hours": float("nan")}, "nan"),
        ({"hours": float("inf")}, "inf"),
        ({"hours": 10**400}, "hours"),
        ({"hours": "1e3"}, "1e3"),
        ({"hours": "8:00"}, "8:00"),
        ({"hours": True}, "True"),
        ({"partition": "sxm2\n#SBATCH --uid=0"}, "partition"),
        ({"partition": "-p"}, "partition"),
        ({"partition": "a,b"}, "partition"),
        ({"partition": 3}, "partition"),
        ({"image": "/etc/passwd"}, "image"),
        ({"image": "--nv"}, "image"),
        ({"image": "a\n"}, "image"),
        ({"account": "a\n#SBATCH --uid=0"}, "an account"),
        ({"qos": "a b"}, "a QOS"),
        ({"reservation": "-r"}, "a reservation"),
        ({"constraint": "a&b"}, "a node feature"),
        ({"constraint": ["a"]}, "a node feature"),
        ({"partition": "x" * 65}, "partition"),
        ({"gpu_type": "a100:8"}, "type of GPU"),
        ({"gpu_type": "a100\n#SBATCH --uid=0"}, "type of GPU"),
        ({"gpu_type": "a100,mps"}, "type of GPU"),
        ({"gpu_type": 1}, "type of GPU"),
        ({"gpu": 1}, "gpu"),
        ({"cmd": "id"}, "cmd"),
        ({1: 1}, "1"),
        ([], "JSON object"),
        ("gpus=1", "JSON object"),
        (None, "JSON object"),
    ],
)
def test_bad_options_are_refused_by_name(options: object, named: str) -> None:
    with pytest.raises(BadOption) as refusal:
        parse(options)
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_form_field_sent_twice_is_refused() -> None:
    with pytest.raises(BadOption, match="given 2 times"):
        single_values({"gpus": ["1", "8"]})


def test_the_hubs_own_form_field_is_no_option() -> None:
    assert single_values({"_xsrf": ["token"], "gpus": ["1"]}) == {"gpus": "1"}


@given(
    gpus=st.none() | st.integers(0, 1024),
    minutes=st.none() | st.integers(1, 60 * 24 * 30),
    partition=st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", fullmatch=True),
)
def test_what_is_stored_is_read_back(
    gpus: int | None, minutes: int | None, partition: str | None
) -> None:
    time = None if minutes is None else timedelta(minutes=minutes)
    request = SessionRequest(gpus, time, partition)
    assert parse(request.as_json()) == request
