"""What each viewer is shown of one picture."""

import json
from dataclasses import replace

import pytest

from dsportal.cluster import view
from dsportal.cluster.edition import Edition
from dsportal.cluster.picture import Picture
from dsportal.cluster.view import Viewer
from jupyterhub_gpu_slurm.slurm.records import Gres, Share
from tests.unit.cluster.pictures import ADAS, BOBS, DRAINED, NODE, WAITING, picture

ADA = Viewer("ada", sees_names=False)
STRANGER = Viewer("eve", sees_names=False)
ADMIN = Viewer("root", sees_names=True)


def states(shown: Picture, viewer: Viewer) -> dict[str, list[str]]:
    rows = (view.node_row(shown, node, viewer) for node in shown.nodes)
    return {row["name"]: [gpu["state"] for gpu in row["gpus"]] for row in rows}


def test_a_gpu_is_free_mine_somebody_elses_or_out_of_service() -> None:
    assert states(picture(), ADA) == {
        "node1": ["mine", "mine", "others", "free"],
        # A job goes on on a drained node.
        "node2": ["down", "down", "down", "others"],
    }


def test_two_viewers_of_one_picture_see_their_own() -> None:
    bob = Viewer("bob", sees_names=False)
    assert states(picture(), bob)["node1"] == ["others", "others", "mine", "free"]
    assert states(picture(), STRANGER)["node1"] == ["others", "others", "others", "free"]


def test_others_names_are_not_in_what_a_user_gets() -> None:
    edition = Edition(picture(), "portal")
    for viewer in (ADA, STRANGER):
        text = edition.cluster_body(viewer) + edition.jobs_body(viewer)
        assert "bob" not in text
        assert "secret" not in text


def test_an_admin_gets_the_names() -> None:
    edition = Edition(picture(), "portal")
    (first, *_) = edition.nodes(ADMIN)
    assert [gpu["user"] for gpu in first["gpus"]] == ["ada", "ada", "bob", None]
    assert [job["user"] for job in edition.jobs(ADMIN)] == ["ada", "bob", "bob"]


def test_the_same_words_serve_all_who_have_no_jobs() -> None:
    edition = Edition(picture(), "portal")
    first = edition.jobs_body(STRANGER)
    assert edition.jobs_body(Viewer("mallory", sees_names=False)) is first
    assert edition.jobs_body(ADA) is not first


def test_where_slurm_tells_no_numbers_the_squares_are_counted() -> None:
    node = replace(NODE, gpus_in_use=None)
    shown = picture(nodes=(node,), shares={})
    assert states(shown, ADA)["node1"] == ["others", "others", "others", "free"]


def test_where_slurm_tells_no_numbers_a_drained_node_counts_too() -> None:
    node = replace(DRAINED, gpus_in_use=None)
    shown = picture(nodes=(node,), shares={})
    assert states(shown, ADA)["node2"] == ["others", "down", "down", "down"]


def test_a_job_that_moved_between_the_questions_holds_no_square() -> None:
    shown = picture(ADAS, shares={1: (Share(1, frozenset({0})), Share(1, frozenset({0})))})
    assert states(shown, ADA)["node1"] == ["others", "others", "others", "free"]


def test_a_gpu_of_which_two_jobs_hold_parts_is_nobodys_by_name() -> None:
    node = replace(NODE, gres=(Gres("gpu", "l4", 1), Gres("shard", "l4", 4, 1)))
    jobs = (ADAS, replace(BOBS, nodes=("node1",)))
    part = (Share(0, frozenset({0})),)
    shown = picture(*jobs, nodes=(node,), shares={1: part, 2: part})
    (gpu,) = view.node_row(shown, node, ADMIN)["gpus"]
    assert (gpu["state"], gpu["user"]) == ("others", None)


def test_free_gpus_are_those_that_a_new_job_could_have() -> None:
    assert Edition(picture(), "portal").gpus == {"total": 8, "free": 1}


def test_a_waiting_job_says_why_and_since_when() -> None:
    row = view.job_row(picture(), WAITING, Viewer("bob", sees_names=False), "portal")
    assert row["reason"] == "Your Slurm account as a whole is at its limit of GPUs"
    assert row["started"] is None
    assert row["expected_start"] is not None
    assert row["ends"] is None


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("AssocGrpGRES", "Its owner's Slurm account as a whole is at its limit of GPUs"),
        ("QOSMaxGRESPerUser", "Its owner is at the limit of GPUs under its owner's QOS"),
        ("JobHeldUser", "Its owner holds it"),
        ("Resources", "No node has enough free GPUs, cores and memory at the moment"),
        ("NewInSlurm99", "Slurm says: NewInSlurm99"),
    ],
)
def test_the_reason_of_somebody_elses_job_does_not_speak_to_the_viewer(
    reason: str, words: str
) -> None:
    assert view.waits_because(replace(WAITING, reason=reason), is_mine=False) == words


def test_a_job_of_the_hubs_is_a_session() -> None:
    rows = {row["id"]: row for row in Edition(picture(), "portal").jobs(ADA)}
    assert [rows[name]["is_session"] for name in ("1", "2")] == [True, False]
    assert [rows[name]["is_mine"] for name in ("1", "2")] == [True, False]


def test_an_answer_has_its_moment_and_says_when_it_is_old() -> None:
    edition = Edition(picture(), "portal", trouble="Slurm does not answer.")
    answer = json.loads(edition.dated(edition.jobs_body(ADA)))
    assert answer["as_of"] == picture().as_of.timestamp()
    assert answer["trouble"] == "Slurm does not answer."


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    nodes = tuple(replace(NODE, name=name) for name in ("node10", "node9", "a1"))
    assert [node.name for node in picture(nodes=nodes).nodes] == ["a1", "node9", "node10"]
