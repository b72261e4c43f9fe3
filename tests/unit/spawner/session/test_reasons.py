"""Slurm's reasons. The list is the one of its sources, of the first and last release looked at."""

from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.session.reasons import REASONS, reason_of

ALL = Path(__file__).parents[2] / "data" / "job_reasons_of_slurm_22.05_and_26.05.txt"


@pytest.mark.parametrize("word", ALL.read_text(encoding="utf-8").split())
def test_every_reason_of_slurm_has_words_and_advice(word: str) -> None:
    reason = reason_of(word)
    assert reason is not None
    assert reason.why
    assert reason.advice


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("AssocGrpGRES", "your Slurm account as a whole is at its limit of GPUs"),
        ("QOSMaxGRESPerUser", "you are at your limit of GPUs under your QOS"),
        ("QOSMaxCpuPerJobLimit", "it asks for more than your QOS allows for one job (cores)"),
        ("QOSMinGRES", "it asks for less than your QOS requires (GPUs)"),
        ("AssocGrpGRESMinutes", "your Slurm account as a whole is at its limit of GPUs over time"),
        ("MaxJobsPerAccount", "your Slurm account as a whole is at its limit of jobs"),
    ],
)
def test_the_limits_are_read_by_their_grammar(word: str, why: str) -> None:
    reason = reason_of(word)
    assert reason is not None
    assert reason.why == why


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:node[1-3]", "ReqNodeNotAvail"),
        # Sentences that slurmctld writes instead: state_desc in its sources, 22.05 to 25.11.
        (
            "Nodes required for job are DOWN, DRAINED, REBOOTING or reserved for jobs in higher "
            "priority partitions",
            "Nodes required for job are DOWN",
        ),
        (
            "Job's account not permitted to use this partition (gpu allows a,b not c)",
            "AccountNotAllowed",
        ),
        (
            "Job's QOS not permitted to use this partition (gpu allows high,low not normal)",
            "QOSNotAllowed",
        ),
        (
            "uid 1000 not in group permitted to use this partition (gpu). groups allowed: a,b",
            "PartitionConfig",
        ),
        ("Reservation course was deleted", "ReservationDeleted"),
        ("Reservation course is invalid", "ReservationInvalid"),
    ],
)
def test_what_slurm_says_of_a_reason_is_known_by_its_word(said: str, word: str) -> None:
    assert reason_of(said) is REASONS[word]


@pytest.mark.parametrize("word", ["", "Fnord", "AssocMaxFnordPerJob", "<script>"])
def test_what_no_slurm_says_is_not_explained(word: str) -> None:
    assert reason_of(word) is None
