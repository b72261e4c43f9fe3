"""The Slurm panel, as a user works with it: by keyboard."""

import pwd
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.browser import keyboard
from tests.browser.fit import assert_part_is_fit
from tests.browser.lab import open_lab
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.browser

USER, OTHER = USERS[2], USERS[3]
TRAINING = """
for step in $(seq 20000); do printf 'step %s\\n' $step; done
until [ -e go ]; do sleep 0.1; done
printf '10%%\\r\\033[32m100%%\\033[0m\\nthe needle\\n'; sleep 600
"""


@pytest.fixture
def home(portal: Instance) -> Path:
    home = Path(pwd.getpwnam(USER).pw_dir)
    portal.slurm("/bin/rm", "-rf", str(home / "go"), user=USER)
    return home


@pytest.fixture
def user(portal: Instance, visit: Callable[[str], Visitor], home: Path) -> Visitor:
    user = visit(USER)
    user.leave()
    user.start_and_wait(gpus=1, hours=2)
    return user


@pytest.fixture
def jobs(portal: Instance, user: Visitor, home: Path) -> Iterator[dict[str, str]]:
    """Jobs of the user's terminal, and one of somebody else's."""

    def submit(owner: str, name: str, script: str, *options: str) -> str:
        folder = pwd.getpwnam(owner).pw_dir
        argv = ["sbatch", "--parsable", "--mem=50M", f"--job-name={name}", *options]
        return portal.slurm(*argv, f"--wrap={script}", user=owner, home=folder).strip()

    found = {
        "training": submit(USER, "training", TRAINING, "--gres=gpu:2", "--time=90", "--requeue"),
        "failing": submit(USER, "failing", "exit 3"),
        "later": submit(USER, "later", "true", "--begin=now+1hour"),
        "theirs": submit(OTHER, "theirs", "sleep 600"),
    }
    yield found
    portal.cancel(*found.values())


def row(panel: Locator, job_id: str) -> Locator:
    return panel.get_by_role("listitem").filter(has_text=f"Job {job_id} ·")


def listed(user: Visitor) -> set[str]:
    """Return the jobs that the session tells of."""
    told = user.session("GET", "/portal/jobs?free=0").json()
    return {job["id"] for job in told["jobs"]}


def left_of(portal: Instance, job_id: str) -> str:
    """Return what is left of a job's time by now, in whole minutes and in the panel's words."""
    end = datetime.fromisoformat(portal.job(job_id)["EndTime"]).astimezone()
    hours, minutes = divmod(int((end - datetime.now(UTC)).total_seconds() // 60), 60)
    return f"{hours} h {minutes:02} min left"


def press(page: Page, button: Locator) -> None:
    """Use a button as a keyboard does."""
    button.focus()
    expect(button).to_be_focused()
    page.keyboard.press("Enter")


def test_jobs_are_watched_and_cancelled_by_keyboard(
    portal: Instance,
    page: Page,
    user: Visitor,
    jobs: dict[str, str],
    photograph: Callable[[Page, str], None],
) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url.split("/portal/")[-1].split("?")[0])

    page.on("request", note)
    open_lab(page, portal, USER)

    # The status bar says what the session holds; Enter asks for more time.
    time_left = page.get_by_role("button", name=re.compile("left$"))
    expect(time_left).to_have_text(re.compile(r"^1 GPU · \S+ · 1 h 5\d min left$"), timeout=60_000)
    press(page, time_left)
    expect(page.get_by_role("dialog").filter(has_text="Extend Session")).to_be_visible()
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 700, "height": 860})
    expect(page.get_by_role("button", name=re.compile("^1 h 5. min left$"))).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 860})

    # Below the files stands how full their storage is; what is not looked at is not asked for.
    expect(page.get_by_role("note", name="Storage")).to_have_text(
        re.compile(r"^Home: [\d.]+ \w+ of [\d.]+ \w+ used")
    )
    assert "jobs" not in asked

    press(page, page.get_by_role("tab", name="Slurm: my jobs"))
    panel = page.get_by_role("region", name="Slurm: my jobs")
    expect(row(panel, jobs["training"])).to_contain_text(re.compile(r"running.*2 GPUs"))
    # Its time has gone by since before the page was opened, and the panel looks every few seconds.
    training = row(panel, jobs["training"])
    until(
        lambda: left_of(portal, jobs["training"]) in training.inner_text().replace("\u00a0", " "),
        seconds=60,
        what="the panel says what is left of the training's time",
    )
    expect(row(panel, jobs["later"])).to_contain_text(re.compile(r"waiting.*expected\sto\sstart"))
    expect(row(panel, jobs["failing"])).to_contain_text("failed, exit code 3")
    session = panel.get_by_role("listitem").filter(has_text="This session")
    expect(session).to_contain_text("Stop Session")
    expect(session.get_by_role("button")).to_have_count(0)
    expect(row(panel, jobs["theirs"])).to_have_count(0)
    # The session has one GPU, the training two.
    expect(panel).to_contain_text(re.compile(r"Free GPUs.*\d+ of 12 free"))
    expect(panel).not_to_contain_text("not responding")

    # The log begins near its end, and goes on.
    press(page, panel.get_by_role("button", name="Log of job " + jobs["training"]))
    log = page.get_by_role("log")
    expect(log).to_be_focused()
    expect(log).to_contain_text("step 20000")
    expect(log).not_to_contain_text("step 5000")
    portal.slurm("/usr/bin/touch", f"{pwd.getpwnam(USER).pw_dir}/go", user=USER)
    expect(log).to_contain_text(re.compile(r"20000\s100%\s+the needle\s+$"))
    page.wait_for_function(
        "log => log.scrollHeight - log.scrollTop - log.clientHeight < 4", arg=log.element_handle()
    )
    photograph(page, "jobs")
    find = page.get_by_role("searchbox", name="Find in the log")
    find.fill("step 1999")
    page.keyboard.press("Enter")
    expect(page.get_by_role("toolbar", name="Log").get_by_role("status")).to_have_text("2 of 10")
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")

    # A panel that is not in sight asks once a minute at most, while the log's tab goes on.
    press(page, page.get_by_role("tab", name=re.compile("File Browser")))
    expect(panel).to_be_hidden()
    asked.clear()
    for _ in range(5):
        with page.expect_request(re.compile("/portal/jobs/log")):
            pass
    assert asked.count("jobs") <= 1

    # While the session is silent, nothing else stands below the log.
    page.route(re.compile("/portal/jobs/log"), lambda route: route.abort())
    foot = page.locator(".portal-Log-foot")
    expect(foot).to_have_text(re.compile(r"^[^·]+ not responding[^·]+$"))
    page.unroute(re.compile("/portal/jobs/log"))

    press(page, page.get_by_role("tab", name="Slurm: my jobs"))
    press(page, panel.get_by_role("button", name="Cancel job " + jobs["training"]))
    dialog = page.get_by_role("dialog").filter(has_text="Cancel job")
    expect(dialog).to_contain_text("training (Job")
    press(page, dialog.get_by_role("button", name="Cancel Job"))
    expect(row(panel, jobs["training"])).to_contain_text(re.compile("being cancelled|cancelled"))
    # The button that was pressed is of no more use.
    expect(panel.get_by_role("button", name="Refresh")).to_be_focused()
    expect(row(panel, jobs["training"])).to_contain_text(
        re.compile("^trainingcancelled"), timeout=60_000
    )
    expect(page.get_by_text("the job has ended")).to_be_visible()
    assert portal.job(jobs["training"])["JobState"] == "CANCELLED"
    assert portal.job(jobs["theirs"])["JobState"] == "RUNNING"

    # The log of a job that was put back into the queue goes on where it is looked at again.
    portal.slurm("scontrol", "requeue", jobs["training"], user=USER)
    expect(row(panel, jobs["training"])).to_contain_text("waiting", timeout=60_000)
    page.get_by_role("tab", name="Launcher").click()
    page.get_by_role("tab", name="Log of training").click()
    expect(log).to_be_visible()
    expect(page.get_by_text("the job has ended")).to_have_count(0)


FAILING = """
until [ -e go ]; do sleep 0.1; done
echo loading the images; echo no space left on device >&2; exit 3
"""


@pytest.fixture
def failing(portal: Instance, user: Visitor, home: Path) -> Iterator[str]:
    """A job that fails once there is a file ``go``."""
    argv = ["sbatch", "--parsable", "--mem=50M", "--job-name=images", f"--wrap={FAILING}"]
    job_id = portal.slurm(*argv, user=USER, home=str(home)).strip()
    yield job_id
    portal.cancel(job_id)


def test_a_job_that_fails_is_announced_to_users_who_never_opened_the_panel(
    portal: Instance, page: Page, user: Visitor, home: Path, failing: str
) -> None:
    # The cluster's service may have looked at Slurm just before the job came.
    until(lambda: failing in listed(user), seconds=30, what="the session knows of the job")
    page.clock.install()
    open_lab(page, portal, USER)
    notice = page.get_by_role("alert").filter(has_text="images")

    def look() -> set[str]:
        """Let the page's next minute pass; return the jobs that it was told of."""
        with page.expect_response(re.compile(r"/portal/jobs\?free=0")) as answer:
            page.clock.fast_forward("01:00")
        return {job["id"] for job in answer.value.json()["jobs"]}

    assert failing in look()
    expect(notice).to_have_count(0)
    portal.slurm("/usr/bin/touch", str(home / "go"), user=USER)

    def is_announced() -> bool:
        look()
        return notice.is_visible()

    until(is_announced, seconds=60, what="the toast", every=1)
    expect(notice).to_contain_text("no space left on device")
    expect(page.get_by_role("region", name="Slurm: my jobs")).to_have_count(0)


def test_a_job_that_fails_is_announced_with_its_last_lines_and_its_log(
    portal: Instance, page: Page, home: Path, failing: str
) -> None:
    open_lab(page, portal, USER)
    press(page, page.get_by_role("tab", name="Slurm: my jobs"))
    panel = page.get_by_role("region", name="Slurm: my jobs")
    expect(row(panel, failing)).to_contain_text("running")
    portal.slurm("/usr/bin/touch", str(home / "go"), user=USER)

    notice = page.get_by_role("alert").filter(has_text="images")
    expect(notice).to_contain_text("failed, exit code 3")
    expect(notice).to_contain_text("no space left on device")
    notice.hover()  # once it has slid in
    assert_part_is_fit(page, "a job has failed", ".Toastify__toast")
    keyboard.press(page, notice.get_by_role("button", name="Open Log"))
    expect(page.get_by_role("tab", name="Log of images")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("loading the images")
    expect(page.get_by_role("log")).to_contain_text("no space left on device")
