"""What each viewer is shown of one snapshot."""

import json
from dataclasses import replace

import pytest

from dsportal.cluster import view, words
from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.snapshot import Snapshot
from dsportal.cluster.view import Viewer
from jupyterhub_gpu_slurm.slurm.records import Cluster, GpuAllocation, Gres
from tests.unit.cluster.snapshots import ADAS, BOBS, DRAINED, NODE, WAITING, snapshot

ADA = Viewer("ada", sees_names=False)
STRANGER = Viewer("eve", sees_names=False)
ADMIN = Viewer("root", sees_names=True)


def states(shown: Snapshot, viewer: Viewer) -> dict[str, list[str]]:
    rows = (view.node_row(shown, node, viewer) for node in shown.nodes)
    return {row["name"]: [gpu["state"] for gpu in row["gpus"]] for row in rows}


def test_a_gpu_is_free_mine_somebody_elses_or_out_of_service() -> None:
    assert states(snapshot(), ADA) == {
        "node1": ["mine", "mine", "others", "free"],
        # A job goes on on a drained node.
        "node2": ["down", "down", "down", "others"],
    }


def test_two_viewers_of_one_picture_see_their_own() -> None:
    bob = Viewer("bob", sees_names=False)
    assert states(snapshot(), bob)["node1"] == ["others", "others", "mine", "free"]
    assert states(snapshot(), STRANGER)["node1"] == ["others", "others", "others", "free"]


def test_others_names_are_not_in_what_a_user_gets() -> None:
    shared = SharedView(snapshot(), "portal")
    for viewer in (ADA, STRANGER):
        text = shared.cluster_body(viewer) + shared.jobs_body(viewer)
        assert "bob" not in text
        assert "secret" not in text


def test_an_admin_gets_the_names() -> None:
    shared = SharedView(snapshot(), "portal")
    (first, *_) = shared.nodes(ADMIN)
    assert [gpu["user"] for gpu in first["gpus"]] == ["ada", "ada", "bob", None]
    assert [job["user"] for job in shared.jobs(ADMIN)] == ["ada", "bob", "bob"]


def test_the_same_words_serve_all_who_have_no_jobs() -> None:
    shared = SharedView(snapshot(), "portal")
    first = shared.jobs_body(STRANGER)
    assert shared.jobs_body(Viewer("mallory", sees_names=False)) is first
    assert shared.jobs_body(ADA) is not first


def test_a_slurm_that_tells_no_job_of_a_node_in_use_hides_them() -> None:
    told = snapshot()
    busy = replace(NODE, cores_used=8)
    partition = replace(told.cluster.partitions[0], nodes=(busy,))
    hidden = replace(told, jobs=(), cluster=replace(told.cluster, partitions=(partition,)))
    assert hidden.hides_jobs
    shared = SharedView(hidden, "portal", hides_jobs=True)
    assert json.loads(shared.dated(shared.jobs_body(ADA)))["trouble"] == words.JOBS_HIDDEN
    assert json.loads(shared.dated(shared.cluster_body(ADA)))["trouble"] is None
    assert not replace(hidden, jobs=told.jobs).hides_jobs
    idle = replace(partition, nodes=(NODE,))
    assert not replace(hidden, cluster=replace(told.cluster, partitions=(idle,))).hides_jobs


def test_a_users_own_jobs_are_those_of_all_jobs_that_are_theirs() -> None:
    shared = SharedView(snapshot(), "portal")
    bob = Viewer("bob", sees_names=False)
    own = shared.jobs(bob, only_own=True)
    assert len(own) == 2
    assert own == [job for job in shared.jobs(bob) if job["is_mine"]]
    assert shared.jobs_body(bob, only_own=True) != shared.jobs_body(bob)
    assert shared.jobs(STRANGER, only_own=True) == []


def test_where_slurm_tells_no_numbers_the_squares_are_counted() -> None:
    node = replace(NODE, gpus_in_use=None)
    shown = snapshot(nodes=(node,), shares={})
    assert states(shown, ADA)["node1"] == ["others", "others", "others", "free"]


def test_where_slurm_tells_no_numbers_a_drained_node_counts_too() -> None:
    node = replace(DRAINED, gpus_in_use=None)
    shown = snapshot(nodes=(node,), shares={})
    assert states(shown, ADA)["node2"] == ["others", "down", "down", "down"]


def test_a_job_that_moved_between_the_questions_holds_no_square() -> None:
    shown = snapshot(
        ADAS, shares={1: (GpuAllocation(1, frozenset({0})), GpuAllocation(1, frozenset({0})))}
    )
    assert states(shown, ADA)["node1"] == ["others", "others", "others", "free"]


def test_a_gpu_of_which_two_jobs_hold_parts_is_nobodys_by_name() -> None:
    node = replace(NODE, gres=(Gres("gpu", "l4", 1), Gres("shard", "l4", 4, 1)))
    jobs = (ADAS, replace(BOBS, nodes=("node1",)))
    part = (GpuAllocation(0, frozenset({0})),)
    shown = snapshot(*jobs, nodes=(node,), shares={1: part, 2: part})
    row = view.node_row(shown, node, ADMIN)
    (gpu,) = row["gpus"]
    assert (gpu["state"], gpu["user"]) == ("others", None)
    assert row["shards"] == 4


def test_free_gpus_are_those_that_a_new_job_could_have() -> None:
    assert SharedView(snapshot(), "portal").gpus == {"total": 8, "free": 1}


def test_a_new_job_can_have_none_of_a_closed_partition() -> None:
    told = snapshot()
    (partition,) = told.cluster.partitions
    closed = replace(partition, name="closed", is_up=False)
    for partitions, free in (((closed,), [0]), ((partition, closed), [1, 0])):
        shared = SharedView(replace(told, cluster=Cluster(partitions)), "portal")
        assert [row["gpus"]["free"] for row in shared.partitions] == free
        assert shared.gpus == {"total": 8, "free": max(free)}
        states = [gpu["state"] for node in shared.nodes(ADA) for gpu in node["gpus"]]
        assert states.count("free") == max(free)


def test_a_waiting_job_says_why_and_since_when() -> None:
    row = view.job_row(snapshot(), WAITING, Viewer("bob", sees_names=False), "portal")
    told = row["reason"] or ""
    assert told.startswith("Your Slurm account ")
    assert told.endswith("limit of GPUs")
    assert row["started"] is None
    assert row["expected_start"] is not None
    assert row["ends"] is None


@pytest.mark.parametrize(
    ("reason", "facts"),
    [
        ("AssocGrpGRES", ("Its owner's Slurm account ", "limit of GPUs")),
        ("QOSMaxGRESPerUser", ("Its owner is ", "its owner's QOS")),
        ("JobHeldUser", ("Its owner put ", "on hold")),
        ("Resources", ("No node ",)),
        ("NewInSlurm99", ("Slurm says: NewInSlurm99",)),
    ],
)
def test_the_reason_of_somebody_elses_job_does_not_speak_to_the_viewer(
    reason: str, facts: tuple[str, ...]
) -> None:
    told = view.waits_because(replace(WAITING, reason=reason), is_mine=False)
    assert told.startswith(facts[0])
    assert facts[-1] in told
    assert "your" not in told.lower()


def test_a_job_of_the_hubs_is_a_session() -> None:
    rows = {row["id"]: row for row in SharedView(snapshot(), "portal").jobs(ADA)}
    assert [rows[name]["is_session"] for name in ("1", "2")] == [True, False]
    assert [rows[name]["is_mine"] for name in ("1", "2")] == [True, False]


def test_an_answer_has_its_moment_and_says_when_it_is_old() -> None:
    shared = SharedView(snapshot(), "portal", trouble="Slurm does not answer.")
    answer = json.loads(shared.dated(shared.jobs_body(ADA)))
    assert answer["as_of"] == snapshot().as_of.timestamp()
    assert answer["trouble"] == "Slurm does not answer."


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    nodes = tuple(replace(NODE, name=name) for name in ("node10", "node9", "a1"))
    assert [node.name for node in snapshot(nodes=nodes).nodes] == ["a1", "node9", "node10"]
