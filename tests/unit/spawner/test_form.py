from datetime import timedelta

from spawner.form.render import render, render_unavailable
from spawner.policy import Defaults, Limits, PartitionLimit
from spawner.resources import ResourceShape

LIMITS = Limits(
    (PartitionLimit("sxm2", 4, timedelta(hours=12)), PartitionLimit("short", 2, timedelta(hours=1)))
)


def form(chosen: dict[str, str] | None = None, note: str = "", limits: Limits = LIMITS) -> str:
    return render(limits, ResourceShape(), Defaults(), chosen or {}, note)


def test_each_number_of_gpus_shows_its_cores_and_memory() -> None:
    html = " ".join(form().split())
    assert "<strong>2 GPUs</strong> <span>16 cores</span> <span>96 GB memory</span>" in html
    assert "<strong>No GPU</strong> <span>2 cores</span> <span>12 GB memory</span>" in html
    assert 'value="4"' in html
    assert 'value="5"' not in html


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
