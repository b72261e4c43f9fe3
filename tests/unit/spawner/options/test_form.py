import re
from dataclasses import replace
from datetime import timedelta

import pytest

from jupyterhub_gpu_slurm.options.allowance import Allowance
from jupyterhub_gpu_slurm.options.form.render import (
    NOT_LIVE,
    Live,
    render,
    render_failure,
    render_unavailable,
)
from jupyterhub_gpu_slurm.options.policy import Defaults, Limits, PartitionLimit
from jupyterhub_gpu_slurm.outlook.availability import Availability, KindOfGpu
from jupyterhub_gpu_slurm.resources import ResourceShape

LIMITS = Limits(
    (PartitionLimit("sxm2", 4, timedelta(hours=12)), PartitionLimit("short", 2, timedelta(hours=1)))
)


def form(
    chosen: dict[str, str] | None = None,
    note: str = "",
    limits: Limits = LIMITS,
    live: Live = NOT_LIVE,
) -> str:
    return render(limits, ResourceShape(), Defaults(), chosen or {}, note, live=live)


def has(partition: str, *kinds: tuple[str | None, int, int, int]) -> Availability:
    """What a partition has: type, free, total and largest block of each kind."""
    return Availability(
        partition,
        tuple(
            KindOfGpu(name, name or "GPU", free, total, most, most)
            for name, free, total, most in kinds
        ),
        free=sum(kind[1] for kind in kinds),
        total=sum(kind[2] for kind in kinds),
        largest_free=max((kind[3] for kind in kinds), default=0),
        largest=max((kind[2] for kind in kinds), default=0),
        has_room_without_gpu=True,
        could_have_room_without_gpu=True,
        shards_free=0,
        shards_total=0,
    )


def test_each_number_of_gpus_shows_its_cores_and_memory() -> None:
    html = " ".join(form().split())
    assert "<strong>2 GPUs</strong> <span>16 cores</span> <span>96 GiB memory</span>" in html
    assert "<strong>No GPU</strong> <span>2 cores</span> <span>12 GiB memory</span>" in html
    assert 'value="4"' in html
    assert 'value="5"' not in html


@pytest.mark.parametrize(
    ("allowance", "chosen"),
    [
        (Allowance(reservation="course"), {}),
        (Allowance(reservations=frozenset({"course"})), {"reservation": "course"}),
        (Allowance(constraints=frozenset({"nvlink"})), {"constraint": "nvlink"}),
    ],
)
def test_what_is_free_of_a_reservation_or_a_feature_is_not_known(
    allowance: Allowance, chosen: dict[str, str]
) -> None:
    live = Live((has("sxm2", ("v100", 0, 4, 0)),))
    assert ">busy now<" in form(live=live)
    html = form(chosen, limits=replace(LIMITS, allowance=allowance), live=live)
    assert ">busy now<" not in html
    assert ">free now<" not in html


def test_one_core_is_no_plural() -> None:
    shape = ResourceShape(cores_per_gpu=1, cores_without_gpu=1)
    html = " ".join(render(LIMITS, shape, Defaults(), {}, "", live=NOT_LIVE).split())
    assert "<strong>1 GPU</strong> <span>1 core</span>" in html
    assert "<strong>2 GPUs</strong> <span>2 cores</span>" in html


def test_defaults_are_chosen() -> None:
    html = form()
    assert 'name="gpus" value="1" checked' in html
    assert 'name="hours" value="8"' in html
    assert '<option value="sxm2" selected>' in html


def test_a_link_fills_in_the_form() -> None:
    html = form({"gpus": "2", "hours": "0.5", "partition": "short"})
    assert 'name="gpus" value="2" checked' in html
    assert 'name="hours" value="0.5"' in html
    assert '<option value="short" selected>' in html


def test_a_prefill_that_does_not_fit_is_left_at_the_default() -> None:
    html = form({"gpus": "99", "hours": "nan", "partition": "secret"})
    assert 'name="gpus" value="1" checked' in html
    assert 'name="hours" value="8"' in html
    assert '<option value="sxm2" selected>' in html


def test_no_text_becomes_markup() -> None:
    limits = Limits((PartitionLimit("</script><b>", 1, None),))
    for html in (form({}, "<img src=x>", limits), render_unavailable("<img src=x>")):
        assert "<img" not in html
        assert "<b>" not in html


def test_each_size_says_whether_it_is_free_now() -> None:
    html = form(live=Live((has("sxm2", ("v100", 5, 12, 2)),)))
    words = re.findall(r'data-gpus="(\d)">([^<]*)<', html)
    assert words == [
        ("0", "free now"),
        ("1", "free now"),
        ("2", "free now"),
        ("3", "busy now"),
        ("4", "busy now"),
    ]


def test_a_chosen_type_decides_what_is_free() -> None:
    limits = Limits((PartitionLimit("mixed", 2, None, (("a100", 2), ("v100", 2))),))
    html = form(
        {"gpu_type": "a100"},
        limits=limits,
        live=Live((has("mixed", ("a100", 1, 2, 1), ("v100", 2, 2, 2)),)),
    )
    words = re.findall(r'data-gpus="(\d)">([^<]*)<', html)
    assert words == [("0", "free now"), ("1", "free now"), ("2", "busy now")]


@pytest.mark.parametrize(
    ("most", "counts"),
    [
        ((0,), [0]),
        ((8,), [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ((9,), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ((16, 11), [*range(9), 10, 11, 12, 14, 16]),
        ((56,), [*range(9), 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56]),
    ],
)
def test_of_many_gpus_only_some_numbers_are_shown(most: tuple[int, ...], counts: list[int]) -> None:
    limits = Limits(tuple(PartitionLimit(f"p{each}", each, None) for each in most))
    html = form({"gpus": "0"}, limits=limits)
    assert [int(one) for one in re.findall(r'name="gpus" value="(\d+)"', html)] == counts


def test_a_number_that_a_link_chooses_is_shown() -> None:
    html = form({"gpus": "13"}, limits=Limits((PartitionLimit("mig", 56, None),)))
    assert 'name="gpus" value="13" checked' in html


def test_a_size_that_must_wait_can_be_chosen() -> None:
    html = form(live=Live((has("sxm2", ("v100", 0, 12, 0)),)))
    assert not re.search(r"<input[^>]* disabled", html)


def test_the_cluster_is_shown_by_partition_and_type() -> None:
    live = Live((has("sxm2", ("a100", 3, 8, 2), ("v100", 0, 4, 0)), has("short", (None, 1, 1, 1))))
    html = form(live=live)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    assert cells == [
        *("a100", "3 of 8", "at most 2"),
        *("v100", "0 of 4", "none"),
        *("GPU", "1 of 1", "at most 1"),
    ]
    # To be seen once, to be heard with each row.
    heads = re.findall(r'<th scope="row"><span([^>]*)>([^<]*)<', html)
    assert heads == [("", "sxm2"), (' class="visually-hidden"', "sxm2"), ("", "short")]


def test_shards_and_partitions_without_gpus_are_named_as_such() -> None:
    shared = replace(has("sxm2", ("l4", 2, 4, 2)), shards_free=8, shards_total=16)
    words = " ".join(re.sub("<[^>]*>", " ", form(live=Live((shared, has("cpu"))))).split())
    assert "sxm2 l4 2 of 4 at most 2 sxm2 shared parts (shards) at least 8 of 16" in words
    assert "cpu no GPUs" in words


def test_a_type_can_be_chosen_where_there_are_two() -> None:
    one = PartitionLimit("sxm2", 4, None, (("v100", 4),))
    two = PartitionLimit("mixed", 4, None, (("a100", 2), ("v100", 4)))
    assert 'name="gpu_type"' not in form(limits=Limits((one,)))
    html = " ".join(form({"gpu_type": "a100"}, limits=Limits((one, two))).split())
    assert '<option value="a100" selected> A100 (mixed)</option>'.replace("> A", ">A") in html
    assert '<option value="v100">V100 (sxm2, mixed)</option>' in html


def test_an_image_can_be_chosen_where_the_site_has_some() -> None:
    assert 'name="image"' not in form({"image": "ngc"})
    limits = replace(LIMITS, images={"ngc": "PyTorch <of> NVIDIA", "r": "R"})
    assert '<option value="ngc">PyTorch &lt;of&gt; NVIDIA</option>' in form(limits=limits)
    assert '<option value="r" selected>R</option>' in form({"image": "r"}, limits=limits)


def test_the_end_of_a_log_is_no_markup() -> None:
    html = render_failure("It <failed>.", ["<script>alert(1)</script>", "{{ 7 * 7 }}"])
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "{{ 7 * 7 }}" in html


def test_a_type_that_only_another_partition_has_chooses_that_partition() -> None:
    one = PartitionLimit("sxm2", 4, None, (("v100", 4),))
    two = PartitionLimit("mixed", 4, None, (("a100", 2), ("v100", 4)))
    html = form({"gpu_type": "a100"}, limits=Limits((one, two)))
    assert '<option value="mixed" selected>' in html
