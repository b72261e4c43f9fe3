"""The papers' examples come out, to the digit; and what follows from one's own figures."""

from fractions import Fraction

import pytest

from dsportal.sizing import papers, words
from dsportal.sizing.answer import answer
from dsportal.sizing.question import SizingError, question

RESNET = {"model": "resnet50-training", "images": "small"}
INFERENCE = {"model": "inference", "images": "small"}
INCEPTION = {"model": "inception4-training", "images": "large"}


@pytest.mark.parametrize(
    ("gpus", "work", "storage", "needed", "nodes", "whole"),
    [
        # The two that the papers work out.
        (80, RESNET, "F800", 7_200, "2.9", 3),
        (72, INCEPTION, "F800", 21_600, "8.0", 8),
        # Their table: what one GPU reads, and how many GPUs one node feeds.
        (1, RESNET, "F800", 90, "0.0", 1),
        (27, RESNET, "F800", 2_430, "1.0", 1),
        (28, RESNET, "F800", 2_520, "1.0", 2),
        (20, INFERENCE, "F800", 3_200, "1.0", 1),
        (9, INCEPTION, "F800", 2_700, "1.0", 1),
        (7, RESNET, "H500", 630, "1.0", 1),
        (5, INFERENCE, "H500", 800, "1.0", 1),
        (2, INCEPTION, "H500", 600, "1.0", 1),
    ],
)
def test_the_papers_figures_come_out(
    gpus: int, work: dict[str, str], storage: str, needed: int, nodes: str, whole: int
) -> None:
    found = answer(question({"gpus": str(gpus), "storage": storage, **work}))
    assert found.mb_per_second == needed
    assert words.tenths(found.nodes) == nodes
    assert found.whole_nodes == whole


@pytest.mark.parametrize(("gpus", "nodes"), [(8, 1), (16, 2), (17, 3)])
def test_the_a100_has_gpus_of_a_node_and_no_rate(gpus: int, nodes: int) -> None:
    found = answer(question({"gpus": str(gpus), "card": "A100"}))
    assert found.whole_nodes == nodes
    assert found.mb_per_second is None
    assert found.mounts_per_host is None
    assert found.mounts_per_link == 2


def test_a_link_of_40_gigabits_is_filled_by_two_mounts() -> None:
    # 5,000 MB/s, of which a mount reads 2,500; 72 GPUs in hosts of 8 read 2,400 MB/s each.
    found = answer(question({"gpus": "72", **INCEPTION}))
    assert found.hosts == 9
    assert found.mb_per_host == 2_400
    assert (found.links_per_host, found.mounts_per_link, found.mounts_per_host) == (1, 2, 2)
    assert found.storage_links == 8


@pytest.mark.parametrize(
    ("link", "mount", "links", "per_link", "mounts", "of_storage"),
    [
        ("10", None, 2, 1, 2, 18),
        ("20", None, 1, 1, 1, 9),
        ("100", None, 1, 5, 5, 8),
        ("40", "1000", 1, 5, 5, 8),
    ],
)
def test_links_and_mounts_follow_from_what_a_host_reads(
    link: str, mount: str | None, links: int, per_link: int, mounts: int, of_storage: int
) -> None:
    given = {"gpus": "72", "link_gbps": link, "mount_mb_per_second": mount or "", **INCEPTION}
    found = answer(question(given))
    assert (found.links_per_host, found.mounts_per_link) == (links, per_link)
    assert found.mounts_per_host == mounts
    assert found.storage_links == of_storage


def test_a_host_has_no_more_gpus_than_there_are() -> None:
    found = answer(question({"gpus": "3", "gpus_per_host": "8"}))
    assert found.hosts == 1
    assert found.mb_per_host == 270


@pytest.mark.parametrize(
    ("images_per_second", "megabits"),
    # One node of the papers, its images/s and the rate of the storage's disks.
    [("7095", 6_370), ("2940", 2_680), ("1590", 1_440)],
)
def test_measured_images_are_the_papers_disks_rate(images_per_second: str, megabits: int) -> None:
    given = {"gpus": "1", "images_per_second": images_per_second, "mb_per_image": "0.113"}
    found = answer(question(given))
    assert found.mb_per_second is not None
    assert float(found.mb_per_second) * 8 == pytest.approx(megabits, rel=0.01)


def test_a_measured_speed_takes_the_place_of_the_papers() -> None:
    # 2,500 images/s x 0.115 MB = 287.5 MB/s: 8 of an F800's 27 x 90 MB/s.
    asked = question({"gpus": "16", "card": "other", "images_per_second": "2500"})
    found = answer(asked)
    assert found.mb_per_gpu == Fraction("287.5")
    assert found.mb_per_second == 4_600
    assert found.gpus_per_node == Fraction(2430) / Fraction("287.5")
    assert found.whole_nodes == 2


def test_a_measured_node_takes_the_place_of_the_papers() -> None:
    given = {"gpus": "80", "storage": "other", "node_mb_per_second": "1000"}
    found = answer(question(given))
    assert found.mb_per_second == 7_200
    assert found.whole_nodes == 8
    assert words.tenths(found.nodes) == "7.2"


def test_a_quotient_that_is_whole_is_not_rounded_up() -> None:
    # As binary fractions 0.1 x 3 x 10 is more than 3.
    given = {"gpus": "30", "images_per_second": "1", "mb_per_image": "0.1"}
    assert answer(question({**given, "node_mb_per_second": "3"})).whole_nodes == 1


def test_for_work_that_is_not_the_papers_a_node_gives_the_least_of_theirs() -> None:
    assert papers.node_mb_per_second("F800", "other", "small") == 2_430
    assert papers.node_mb_per_second("H500", "other", "large") == 600
    assert papers.node_mb_per_second("F800", "inception4-training", "large") == 2_700
    assert papers.node_mb_per_second("other", "resnet50-training", "small") is None


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"card": "other"}, {"images_per_second"}),
        ({"model": "other"}, {"images_per_second"}),
        ({"model": "inference", "images": "large"}, {"images_per_second"}),
        ({"storage": "other"}, {"node_mb_per_second"}),
        ({"card": "A100", "storage": "H500"}, {"images_per_second"}),
        ({"card": "A100", "storage": "other"}, {"images_per_second", "node_mb_per_second"}),
        ({"card": "A100", "node_mb_per_second": "2500"}, {"images_per_second"}),
        ({"storage": "other", "images_per_second": "5"}, {"node_mb_per_second"}),
    ],
)
def test_a_figure_that_nobody_has_is_asked_for(given: dict[str, str], missing: set[str]) -> None:
    with pytest.raises(SizingError) as refused:
        answer(question(given))
    assert set(refused.value.faults) == missing
    assert all("give it as you measured it" in fault for fault in refused.value.faults.values())


def test_the_guides_storage_feeds_seventy_nodes() -> None:
    # 7 GB/s x 3 storage nodes / 300 MB/s of a node with one GPU.
    given = {"gpus_per_host": "1", "node_mb_per_second": "7000", "storage_nodes": "3", **INCEPTION}
    asked = question(given)
    found = answer(asked)
    assert (found.gpus_fed, found.hosts_fed) == (70, 70)
    (row,) = (row for row in words.rows(asked, found) if "feed" in row.what)
    assert row.value == "70 GPUs"
    assert row.how == "3 nodes x 7,000 MB/s / 300 MB/s; 70 hosts with 1 GPU each"


def test_hosts_that_are_fed_are_whole_ones() -> None:
    found = answer(question({"storage_nodes": "3", "gpus_per_host": "8"}))
    assert (found.gpus_fed, found.hosts_fed) == (81, 10)
    assert answer(question({})).gpus_fed is None


def test_storage_without_a_rate_feeds_a_number_of_gpus() -> None:
    asked = question({"card": "A100", "storage_nodes": "2"})
    (row,) = (row for row in words.rows(asked, answer(asked)) if "feed" in row.what)
    assert (row.value, row.how) == ("16 GPUs", "2 nodes x 8.0 GPUs; 2 hosts with 8 GPUs each")


def test_a_hosts_link_and_the_storages_are_two_numbers() -> None:
    # 72 x 300 MB/s: 1,250 MB/s a link of a host, 12,500 one of the storage.
    links = {"link_gbps": "10", "storage_link_gbps": "100"}
    found = answer(question({"gpus": "72", **links, **INCEPTION}))
    assert (found.links_per_host, found.mounts_per_link) == (2, 1)
    assert found.storage_links == 8
    alone = answer(question({"gpus": "72", "link_gbps": "10", **INCEPTION}))
    assert alone.storage_links == 18
