"""The page's HTML."""

import html
import re
from dataclasses import replace

import pytest

from dsportal.cluster.hub_api import sessions_of
from dsportal.cluster.pages import Pages, holders
from dsportal.cluster.sessions import SessionList, rows
from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.view import Viewer
from dsportal.cluster.viewer_access import STREAMS_EACH, TooManyStreams, ViewerAccess, viewer_of
from dsportal.cluster.words import JOBS_HIDDEN
from dsportal.look import appearance
from dsportal.settings.look import LookSettings
from dsportal.sizing.answer import answer
from dsportal.sizing.question import SizingError, question
from dsportal.sizing.words import PAPERS
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres
from tests.unit.cluster.snapshots import ADAS, BOBS, NODE, WAITING, snapshot

ADMIN = Viewer("root", sees_names=True)
ADA = Viewer("ada", sees_names=False)
PAGES = Pages("/hub/", appearance(LookSettings()))


def shared() -> SharedView:
    return SharedView(snapshot(), "portal")


def page(viewer: Viewer, **about: object) -> str:
    given = {"sessions": None, "hours": None, "name": viewer.name, "xsrf_token": "x"} | about
    return PAGES.page(shared(), viewer, **given)  # type: ignore[arg-type]


def test_every_square_has_a_text() -> None:
    text = PAGES.parts(shared(), ADA)["node-node1"]
    said = re.findall(r'<span class="sr">(.*?)</span>', text)
    assert said == [
        "GPU 0, V100: yours, ada",
        "GPU 1, V100: yours, ada",
        "GPU 2, V100: in use",
        "GPU 3, V100: free",
    ]


def test_a_nodes_gpus_are_named_with_the_parts_that_jobs_share() -> None:
    slices = Gres("gpu", "nvidia_a100_1g.5gb", 7)
    nodes = (replace(NODE, gres=(slices, Gres("shard", "a100", 12))), NODE)
    first, second = (
        PAGES.parts(SharedView(snapshot(nodes=(node,), shares={}), "portal"), ADA)["node-node1"]
        for node in nodes
    )
    assert "MIG slice 1g.5gb of A100 (5 GB) · 12 shared parts (shards) · 0/40 cores" in first
    assert "shard" not in second


def test_no_table_of_jobs_is_longer_than_somebody_reads() -> None:
    jobs = [replace(WAITING, user="ada", job_id=job, label=f"{job}") for job in range(10, 211)]
    parts = PAGES.parts(SharedView(snapshot(*jobs), "portal"), ADA)
    assert [parts[name].count("<tr class") for name in ("mine", "waiting")] == [200, 200]
    assert all("and 1 more" in parts[name] for name in ("mine", "waiting"))


def text_of(part: str) -> str:
    return " ".join(re.sub("<.*?>", " ", part).split())


@pytest.mark.parametrize(
    ("running", "waiting", "said"),
    [(0, 0, "0 jobs running 0 waiting"), (1, 1, "1 job running 1 waiting"), (7, 0, "7 jobs run")],
)
def test_numbers_agree_with_their_nouns(running: int, waiting: int, said: str) -> None:
    run = [replace(ADAS, job_id=number, label=f"{number}") for number in range(running)]
    wait = [replace(WAITING, job_id=100 + number) for number in range(waiting)]
    shown = SharedView(replace(snapshot(), jobs=(*run, *wait), shares={}), "portal")
    parts = PAGES.parts(shown, ADA)
    assert said in text_of(parts["summary"])
    assert ("The queue is empty." in parts["waiting"]) == (waiting == 0)
    assert ("No jobs are running." in parts["running"]) == (running == 0)


def test_a_queue_that_slurm_hides_is_not_called_empty() -> None:
    hidden = replace(snapshot(), jobs=(), shares={})
    parts = PAGES.parts(SharedView(hidden, "portal", hides_jobs=True), ADA)
    assert JOBS_HIDDEN in html.unescape(parts["trouble"])
    for name in ("mine", "waiting", "running"):
        assert text_of(parts[name]) == "Not known."


def test_what_people_call_things_is_no_html() -> None:
    nodes = (replace(NODE, is_up=False, reason="<script>alert(1)</script>"),)
    shown = SharedView(snapshot(BOBS, nodes=nodes), "portal")
    text = "".join(PAGES.parts(shown, ADMIN).values())
    assert "<b>" not in text
    assert "&lt;b&gt;secret" in text
    assert "<script>" not in text


def test_a_user_gets_nothing_of_what_is_for_admins() -> None:
    text = page(ADA)
    assert "Sessions" not in text
    assert "GPU hours" not in text
    assert "bob" not in text


def test_everybody_sees_that_a_partition_is_closed() -> None:
    told = snapshot()
    (partition,) = told.cluster.partitions
    closed = replace(told, cluster=Cluster((replace(partition, is_up=False),)))
    chip = PAGES.parts(SharedView(closed, "portal"), ADA)["partitions"]
    hidden = re.compile(r'<span class="sr">.*?</span>')
    assert text_of(hidden.sub("", chip)) == "sxm2 (closed) 0/8"


def test_a_node_that_joins_a_partition_changes_the_layout() -> None:
    told = snapshot()
    more = (*told.cluster.partitions, replace(told.cluster.partitions[0], name="new"))
    after = SharedView(replace(told, cluster=Cluster(more)), "portal")
    assert PAGES.parts(shared(), ADA)["layout"] != PAGES.parts(after, ADA)["layout"]


def test_a_part_is_the_same_text_until_something_in_it_changes() -> None:
    before = PAGES.parts(shared(), ADA)
    after = PAGES.parts(SharedView(snapshot(ADAS, BOBS), "portal"), ADA)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"summary", "waiting"}


def test_a_page_without_a_picture_says_why_and_lets_one_try_again() -> None:
    text = PAGES.error(503, "Slurm <does> not answer.")
    assert "Slurm &lt;does&gt; not answer." in text
    assert ">Try again</a>" in text
    assert "Try again" not in PAGES.error(403, "No.")


def test_who_holds_which_gpus_is_told_job_by_job() -> None:
    (first, *_) = shared().nodes(ADMIN)
    assert [(holder["user"], holder["gpus"]) for holder in holders(first)] == [
        ("ada", [0, 1]),
        ("bob", [2]),
    ]


HUBS_USER = {
    "name": "ada",
    "groups": ["lab"],
    "servers": {
        "": {
            "name": "",
            "ready": True,
            "started": "2026-11-21T11:00:00.000000Z",
            "state": {
                "job_id": "1",
                "held_gpus": 2,
                "idle_seconds": 5400,
                "idle_heard_at": "2026-11-21T11:59:00+00:00",
            },
        },
        "two": {"name": "two", "ready": False, "started": None, "state": None},
    },
}


def test_an_admin_sees_each_session_with_its_idle_time_and_a_button() -> None:
    table = rows(sessions_of(HUBS_USER), snapshot())
    text = page(ADMIN, sessions=SessionList(table, None))
    assert [(row["server"], row["gpus"], row["nodes"]) for row in table] == [
        ("", 2, ["node1"]),
        ("two", None, []),
    ]
    assert "1 h 30 min" in text
    assert 'value="ada/"' in text
    assert 'value="ada/two"' in text
    # Job numbers are in the question, for an administrator with two windows.
    assert "ada's session (job 1) now?" in text
    assert "ada's session (two) now?" in text


def test_sessions_of_before_are_not_called_those_of_now() -> None:
    text = page(ADMIN, sessions=SessionList([], "these are of before"))
    assert '<p class="notice" role="status">these are of before</p>' in text
    assert "Nobody has a session" not in text


def test_an_admin_sees_gpu_hours_with_a_download() -> None:
    hours = {
        "days": 7,
        "by": "user",
        "trouble": None,
        "rows": [{"user": "ada", "groups": ("lab",), "sessions": 3, "gpu_hours": 12.25}],
    }
    text = page(ADMIN, sessions=SessionList([], None), hours=hours)
    assert "12.2" in text
    assert "api/v1/usage.csv?days=7&amp;by=user" in text


def test_one_user_follows_a_bounded_number_of_streams() -> None:
    viewers = ViewerAccess()
    seats = [viewers.seat("eve") for _ in range(STREAMS_EACH)]
    for seat in seats:
        seat.__enter__()
    with pytest.raises(TooManyStreams), viewers.seat("eve"):
        pass
    with viewers.seat("ada"):
        assert viewers.streams == STREAMS_EACH + 1
    seats[0].__exit__(None, None, None)
    with viewers.seat("eve"):
        pass


@pytest.mark.parametrize(
    ("model", "show", "viewer"),
    [
        ({"kind": "user", "name": "ada", "admin": False}, False, Viewer("ada", False)),
        ({"kind": "user", "name": "ada"}, False, Viewer("ada", False)),
        ({"kind": "user", "name": "ada", "admin": "no"}, False, Viewer("ada", False)),
        ({"kind": "user", "name": "ada", "admin": True}, False, Viewer("ada", True)),
        ({"kind": "user", "name": "ada", "admin": False}, True, Viewer("ada", True)),
        # A service of the hub may have the name of a user.
        ({"kind": "service", "name": "ada", "admin": True}, False, Viewer(None, False)),
    ],
)
def test_only_the_hubs_own_word_makes_an_admin(
    model: dict[str, object], show: bool, viewer: Viewer
) -> None:
    assert viewer_of(model, show) == viewer


def sized(**given: str) -> str:
    asked = question(given)
    return PAGES.sizing(given, {}, (asked, answer(asked)), name="ada", is_admin=False)


def test_the_page_on_sizing_has_the_papers_example_and_keeps_what_was_asked() -> None:
    text = sized(gpus="72", model="inception4-training", images="large")
    assert "21,600 MB/s" in text
    assert "8.0: 9 GPUs a node" in text
    assert 'name="gpus" value="72"' in text
    assert '<option value="large" selected>' in text
    assert all(paper in html.unescape(text) for paper in PAPERS)


def test_storage_sizing_is_in_the_bar_of_administrators_only() -> None:
    asked = question({})
    about = {"given": {}, "faults": {}, "sized": (asked, answer(asked)), "name": "ada"}
    ada, admin = (PAGES.sizing(**about, is_admin=is_admin) for is_admin in (False, True))  # type: ignore[arg-type]
    assert 'href="sizing" aria-current="page"' in admin
    assert 'href="sizing" aria-current="page"' not in ada
    assert ">Admin<" not in ada


def test_what_was_asked_wrongly_is_shown_at_its_field_and_is_no_html() -> None:
    given = {"gpus": "<b>", "<i>": "1"}
    with pytest.raises(SizingError) as refused:
        question(given)
    text = PAGES.sizing(given, refused.value.faults, None, name="ada", is_admin=True)
    assert "<b>" not in text
    assert "<i>" not in text
    assert 'value="&lt;b&gt;"' in text
    assert 'aria-invalid="true" aria-describedby="gpus-note gpus-fault"' in text
    assert 'role="alert"' in text
