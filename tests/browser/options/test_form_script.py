"""The form's own script in a real browser, on a cluster of many kinds of GPUs.

The answers are a stand-in: no Slurm of ours has so many kinds, and none can be told to be silent
for an hour. `test_form` has the real ones.
"""

import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from playwright.sync_api import Error, Locator, Page, Route, expect

from jupyterhub_gpu_slurm.options.form.render import Live, render
from jupyterhub_gpu_slurm.options.policy import Defaults, Limits, PartitionLimit
from jupyterhub_gpu_slurm.options.profile import Profile
from jupyterhub_gpu_slurm.options.request import SessionRequest
from jupyterhub_gpu_slurm.outlook.availability import Availability, KindOfGpu, label
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.slurm.associations import Association

pytestmark = pytest.mark.browser

ADDRESS = "http://portal.test"
INTERVAL = 10
LIMITS = Limits(
    (
        PartitionLimit("sxm2", 8, timedelta(hours=12), (("a100", 8), ("t4", 2))),
        PartitionLimit("mig", 4, timedelta(hours=4), (("1g.10gb", 4), ("a100_3g.20gb", 1))),
        PartitionLimit("cpu", 0, None),
    )
)


def kind(gpu_type: str, free: int, total: int, largest_free: int) -> KindOfGpu:
    return KindOfGpu(gpu_type, label(gpu_type), free, total, largest_free, largest_free)


def partition(name: str, largest_free: int, *kinds: KindOfGpu) -> Availability:
    free, total = sum(one.free for one in kinds), sum(one.total for one in kinds)
    return Availability(name, kinds, free, total, largest_free, total, True, True, 0, 0)


AVAILABLE = (
    partition("sxm2", 3, kind("a100", 5, 16, 3), kind("t4", 0, 4, 0)),
    partition("mig", 4, kind("1g.10gb", 9, 14, 4), kind("a100_3g.20gb", 1, 4, 1)),
    partition("cpu", 0),
)


@dataclass
class StandIn:
    """Answers the script's questions, and remembers them."""

    available: tuple[Availability, ...] = AVAILABLE
    limits: Limits = LIMITS
    now: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(minutes=1))
    """What the page's clock says: far enough ahead for it to be stopped before it is there."""
    profiles: tuple[Profile, ...] = ()
    answer: dict[str, str | None] = field(
        default_factory=lambda: {"state": "now", "start": None, "why": ""}
    )
    ahead: timedelta | None = None
    """By how much its clock is ahead of the page's; ``None``: it does not tell."""
    status: int = 200
    body: str | None = None
    forecasts: list[str] = field(default_factory=list)
    looks: int = 0
    posted: list[str] = field(default_factory=list)

    @property
    def date(self) -> dict[str, str]:
        if self.ahead is None:
            return {}
        return {"Date": format_datetime(self.now + self.ahead, usegmt=True)}

    def __call__(self, route: Route) -> None:
        request = route.request
        if request.method == "POST":
            self.posted.append(request.post_data or "")
            route.fulfill(body="started")
        elif "/forecast?" in request.url:
            self.forecasts.append(request.url.partition("?")[2])
            if self.body is None:
                route.fulfill(status=self.status, json=self.answer, headers=self.date)
            else:
                route.fulfill(status=self.status, body=self.body)
        elif "/availability" in request.url:
            self.looks += 1
            route.fulfill(json={"partitions": [asdict(one) for one in self.available]})
        else:
            live = Live(self.available, "/api/{what}", INTERVAL)
            form = render(
                self.limits, ResourceShape(), Defaults(), {}, live=live, profiles=self.profiles
            )
            button = '<button type="submit">Start</button>'
            route.fulfill(
                content_type="text/html",
                body=f'<!doctype html><meta charset="utf-8"><form method="post">{form}{button}',
            )


@pytest.fixture
def hub(page: Page) -> StandIn:
    stand_in = StandIn()
    page.route("**/*", stand_in)
    # It stands still but for run_for.
    page.clock.install()
    page.clock.pause_at(stand_in.now)
    return stand_in


def open_form(page: Page) -> None:
    page.goto(ADDRESS)
    page.clock.run_for(300)


def size(page: Page, gpus: int) -> str:
    """Return what the card of a size says of now."""
    return (page.locator(f'.gpu-form-now[data-gpus="{gpus}"]').text_content() or "").strip()


def forecast(page: Page, state: str) -> Locator:
    """Find what the form says of the start, while it is of this kind."""
    return page.get_by_role("status").and_(page.locator(f'[data-state="{state}"]'))


def wait_for_looks(page: Page, hub: StandIn, looks: int) -> None:
    """Let the script's own interval pass so many times."""
    for _ in range(looks):
        before = hub.looks
        with page.expect_response("**/availability*"):
            page.clock.run_for(1000 * INTERVAL)
        assert hub.looks == before + 1


def wait_for_forecasts(page: Page, hub: StandIn, count: int) -> None:
    """Let the page read what the last look found, however slow it is, and ask within its pause."""
    for _ in range(10):
        page.clock.run_for(300)
        if len(hub.forecasts) >= count:
            break
        page.wait_for_timeout(100)
    assert len(hub.forecasts) == count


@pytest.mark.parametrize("hours", ["0", "12.0001", "", "-1", "0.01"])
def test_a_time_that_cannot_be_had_is_refused_before_slurm_is_asked(
    page: Page, hub: StandIn, hours: str
) -> None:
    open_form(page)
    expect(forecast(page, "now")).to_be_visible()
    asked = len(hub.forecasts)
    page.get_by_label("Session time in hours").fill(hours)
    expect(forecast(page, "refused")).to_contain_text("12 hours")
    expect(page.get_by_label("Session time in hours")).to_have_attribute("aria-invalid", "true")
    page.clock.run_for(1000)
    assert len(hub.forecasts) == asked
    page.get_by_label("Session time in hours").fill("12")
    page.clock.run_for(300)
    expect(forecast(page, "now")).to_be_visible()


def test_starts_now_is_not_said_of_another_choice_or_of_what_was_taken_since(
    page: Page, hub: StandIn
) -> None:
    open_form(page)
    expect(forecast(page, "now")).to_be_visible()
    page.locator('input[name="gpus"][value="2"]').check(force=True)
    # The clock stands still: Slurm has not been asked yet.
    expect(forecast(page, "asking")).to_be_visible()
    page.clock.run_for(300)
    expect(forecast(page, "now")).to_be_visible()
    hub.available = (partition("sxm2", 0, kind("a100", 0, 16, 0), kind("t4", 0, 4, 0)),)
    with page.expect_response("**/availability*"):
        page.clock.run_for(1000 * INTERVAL)
    hub.answer = {"state": "later", "start": None, "why": ""}
    expect(forecast(page, "asking")).to_be_visible()


def test_an_answer_that_is_under_way_is_not_taken_for_another_choices(
    page: Page, hub: StandIn
) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/forecast?*", hold)
    open_form(page)
    for _ in range(50):
        if held:
            break
        page.wait_for_timeout(100)
    (first,) = held
    page.locator('input[name="gpus"][value="2"]').check(force=True)
    # The page does not wait for it any more.
    with suppress(Error):
        first.fulfill(json=hub.answer)
    page.wait_for_timeout(200)
    expect(forecast(page, "asking")).to_be_visible()
    expect(forecast(page, "asking")).not_to_have_attribute("aria-busy", "true")
    page.unroute("**/forecast?*")
    page.clock.run_for(300)
    expect(forecast(page, "now")).to_be_visible()


def test_a_type_narrows_the_sizes_to_what_a_node_has_of_it(page: Page, hub: StandIn) -> None:
    open_form(page)
    page.get_by_label("Type of GPU").select_option(label="T4 (sxm2)")
    expect(page.locator('input[name="gpus"][value="2"]')).to_be_enabled()
    expect(page.locator('input[name="gpus"][value="3"]')).to_be_disabled()
    # All are taken now: that is no reason not to wait for them.
    assert size(page, 2) == "busy now"
    with page.expect_response("**/forecast?*gpu_type=t4*"):
        page.clock.run_for(300)
    expect(forecast(page, "now")).to_be_visible()


def test_another_partition_has_other_types_and_sizes(page: Page, hub: StandIn) -> None:
    open_form(page)
    page.locator('input[name="gpus"][value="8"]').check(force=True)
    page.get_by_label("Type of GPU").select_option("a100")
    page.get_by_label("Partition").select_option("mig")
    expect(page.get_by_label("Type of GPU")).to_have_value("")
    expect(page.locator('option[value="a100"]')).to_be_disabled()
    expect(page.locator('input[name="gpus"][value="4"]')).to_be_checked()
    expect(page.get_by_label("Session time in hours")).to_have_attribute("max", "4")
    page.get_by_label("Partition").select_option("cpu")
    expect(page.locator('input[name="gpus"][value="0"]')).to_be_checked()


def test_a_mig_slice_is_called_so(page: Page, hub: StandIn) -> None:
    open_form(page)
    row = page.get_by_role("row").filter(has_text="MIG slice 3g.20gb of A100 (20 GB)")
    expect(row).to_contain_text("1 of 4")
    expect(row.get_by_role("rowheader")).to_have_text("mig")


def test_fast_choices_cost_one_forecast(page: Page, hub: StandIn) -> None:
    open_form(page)
    expect(forecast(page, "now")).to_be_visible()
    before = len(hub.forecasts)
    for gpus in (2, 3, 4, 5):
        page.locator(f'input[name="gpus"][value="{gpus}"]').check(force=True)
    with page.expect_response("**/forecast?*"):
        page.clock.run_for(300)
    assert len(hub.forecasts) == before + 1
    assert "gpus=5" in hub.forecasts[-1]


def test_a_forecast_is_asked_for_again_only_when_it_may_have_changed(
    page: Page, hub: StandIn
) -> None:
    open_form(page)
    expect(forecast(page, "now")).to_be_visible()
    assert len(hub.forecasts) == 1
    wait_for_looks(page, hub, 4)
    assert len(hub.forecasts) == 1
    # Nothing is free any more: the forecast of "now" cannot be true.
    hub.available = (replace(AVAILABLE[0], largest_free=0), *AVAILABLE[1:])
    start = (hub.now + timedelta(minutes=20)).isoformat()
    hub.answer = {"state": "later", "start": start, "why": ""}
    wait_for_looks(page, hub, 1)
    wait_for_forecasts(page, hub, 2)
    expect(forecast(page, "later")).to_be_visible()
    # And after a minute, since a queue moves.
    wait_for_looks(page, hub, 7)
    wait_for_forecasts(page, hub, 3)
    expect(page.get_by_role("status")).not_to_have_attribute("aria-busy", "true")


def test_a_forecast_that_takes_long_is_not_asked_for_again(page: Page, hub: StandIn) -> None:
    open_form(page)
    expect(forecast(page, "now")).to_be_visible()
    # Slurm needs longer than the time between two looks.
    page.route("**/forecast?*", lambda route: hub.forecasts.append(route.request.url))
    hub.available = (replace(AVAILABLE[0], largest_free=0), *AVAILABLE[1:])
    wait_for_looks(page, hub, 3)
    assert len(hub.forecasts) == 2


def test_what_is_free_but_kept_for_others_is_said(page: Page, hub: StandIn) -> None:
    start = (hub.now + timedelta(minutes=20)).isoformat()
    hub.answer = {"state": "later", "start": start, "why": ""}
    open_form(page)
    # The page's own figures may be older than the forecast.
    expect(page.get_by_role("status")).to_have_text(re.compile(r"within 20 minutes\)\.$"))
    wait_for_looks(page, hub, 3)
    expect(page.get_by_role("status")).to_contain_text("Slurm is keeping them")
    page.locator('input[name="gpus"][value="4"]').check(force=True)
    page.clock.run_for(300)
    wait_for_looks(page, hub, 3)
    expect(page.get_by_role("status")).to_have_text(re.compile(r"minutes\)\.$"))


def test_the_minutes_that_are_left_go_by(page: Page, hub: StandIn) -> None:
    start = (hub.now + timedelta(minutes=20)).isoformat()
    hub.answer = {"state": "later", "start": start, "why": ""}
    open_form(page)
    expect(page.get_by_role("status")).to_contain_text("within 20 minutes")
    wait_for_looks(page, hub, 6)
    expect(page.get_by_role("status")).to_contain_text("within 19 minutes")


@pytest.mark.parametrize("minutes", [-60, 60])
def test_a_forecast_goes_by_the_portals_clock(page: Page, hub: StandIn, minutes: int) -> None:
    hub.ahead = timedelta(minutes=minutes)
    start = (hub.now + hub.ahead + timedelta(minutes=20)).isoformat()
    hub.answer = {"state": "later", "start": start, "why": ""}
    open_form(page)
    expect(page.get_by_role("status")).to_contain_text("within 20 minutes")


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(0.2, "within 1 minute)"), (89, "89 minutes"), (240, "4 hours"), (60 * 24 * 9, "9 days")],
)
def test_how_long_it_takes_in_words(page: Page, hub: StandIn, minutes: float, words: str) -> None:
    start = (hub.now + timedelta(minutes=minutes)).isoformat()
    hub.answer = {"state": "later", "start": start, "why": ""}
    open_form(page)
    expect(page.get_by_role("status")).to_contain_text(words)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (503, "<html>the proxy's own page</html>", "not responding"),
        (403, "{}", "login has expired"),
        (400, '{"message": "The session time must be a number."}', "must be a number."),
    ],
)
def test_no_forecast_keeps_nobody_from_starting(
    page: Page, hub: StandIn, status: int, body: str, words: str
) -> None:
    hub.status, hub.body = status, body
    open_form(page)
    expect(forecast(page, "unknown")).to_contain_text(words)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("started")).to_be_visible()
    assert "gpus=1" in hub.posted[0]


def test_words_of_others_are_no_markup(page: Page, hub: StandIn) -> None:
    words = "<img src=x onerror=alert(1)>"
    hub.answer = {"state": "never", "start": None, "why": words}
    open_form(page)
    expect(forecast(page, "never")).to_contain_text(words)


def test_a_tab_that_nobody_looks_at_asks_for_nothing(page: Page, hub: StandIn) -> None:
    open_form(page)
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    page.clock.run_for(60_000)
    assert hub.looks == 0


PHYSICS = Association("physics", frozenset({"normal", "high"}), is_default=True)
TEACHING = Association("teaching", frozenset({"normal"}))


def test_an_account_narrows_the_qos_and_the_forecast_is_of_both(page: Page, hub: StandIn) -> None:
    hub.limits = replace(LIMITS, associations=(PHYSICS, TEACHING))
    open_form(page)
    page.get_by_label("QOS").select_option("high")
    with page.expect_response("**/forecast?*qos=high*"):
        page.clock.run_for(300)
    page.get_by_label("Account").select_option("teaching")
    expect(page.get_by_label("QOS")).to_have_value("")
    expect(page.locator('option[value="high"]')).to_be_disabled()
    with page.expect_response("**/forecast?*account=teaching*"):
        page.clock.run_for(300)
    assert "qos" not in hub.forecasts[-1]


def test_a_named_size_fills_in_the_whole_form(page: Page, hub: StandIn) -> None:
    hub.limits = replace(LIMITS, associations=(PHYSICS, TEACHING))
    asks = SessionRequest(gpus=2, time=timedelta(hours=1), partition="mig", account="teaching")
    hub.profiles = (
        Profile("Small", "To try things", asks),
        Profile("Usual", "", SessionRequest(gpus=1)),
    )
    open_form(page)
    small = page.get_by_role("link", name="Small To try things")
    small.click()
    expect(small).to_have_attribute("aria-current", "true")
    expect(page.get_by_label("Partition")).to_have_value("mig")
    expect(page.locator('input[name="gpus"][value="2"]')).to_be_checked()
    expect(page.get_by_label("Session time in hours")).to_have_value("1")
    expect(page.get_by_label("Account")).to_have_value("teaching")
    # What the other one leaves open is as it was at first.
    page.get_by_role("link", name="Usual").click()
    expect(page.get_by_label("Partition")).to_have_value("sxm2")
    expect(page.get_by_label("Account")).to_have_value("")
    expect(page.get_by_label("Session time in hours")).to_have_value("8")
    page.get_by_label("Partition").select_option("mig")
    expect(page.locator('[aria-current="true"]')).to_have_count(0)


def test_a_named_size_links_to_the_form_filled_in(page: Page, hub: StandIn) -> None:
    hub.profiles = (Profile("Small", "", SessionRequest(gpus=2, partition="mig")),)
    open_form(page)
    link = page.get_by_role("link", name="Small")
    expect(link).to_have_attribute("href", "?opt-gpus=2&opt-partition=mig")
