"""The whole cluster's queue, as squeue prints it."""

import json

import pytest

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm import commands, parsing, queue
from jupyterhub_gpu_slurm.slurm.records import GpuAllocation, JobState, QueuedJob

WORD = "3f9a"
# Slurm 22.05.8: squeue -O "JobID:|WORD|,JobArrayID:|,...,Name:".
LINE = (
    "1|3f9a|1|RUNNING|ada|sxm2|2|2|N/A|gres:gpu:4|N/A|2026-11-21T15:43:24|2026-11-21T15:43:25"
    "|2026-11-21T16:13:25|node[001-002]|None|train"
)


def line(**fields: str) -> str:
    """Return the line with some fields changed."""
    values = LINE.split("|")
    for name, value in fields.items():
        place = 0 if name == "JobID" else commands.QUEUE_FIELDS.index(name.replace("_", "-")) + 1
        values[place] = value
    return "|".join(values)


def the_job(text: str) -> QueuedJob:
    (job,) = queue.jobs(text, WORD)
    return job


def test_a_job_is_read() -> None:
    job = the_job(LINE)
    assert (job.job_id, job.label, job.state, job.user) == (1, "1", JobState.RUNNING, "ada")
    assert job.nodes == ("node001", "node002")
    assert job.reason is None
    assert job.submitted is not None
    assert job.submitted.isoformat() == "2026-11-21T15:43:24+00:00"
    assert job.name == "train"


def test_a_name_cannot_forge_another_jobs_line() -> None:
    forged = "99|3f9b|99|RUNNING|root|sxm2|1|1|N/A|N/A|N/A|N/A|N/A|N/A|node001|None|x"
    assert [job.job_id for job in queue.jobs(f"{LINE} |evil\n{forged}\n{LINE}", WORD)] == [1, 1]


def test_a_separator_in_a_name_belongs_to_the_name() -> None:
    assert the_job(f"{LINE}|RUNNING|root").name == "train|RUNNING|root"


def test_what_a_name_could_do_to_a_terminal_is_left_out() -> None:
    assert the_job(f"{LINE}\x1b[2J").name == "train[2J"


def test_each_question_has_a_word_of_its_own_at_the_beginning_of_its_lines() -> None:
    asked = commands.shown(WORD)["SQUEUE_FORMAT2"]
    assert asked.startswith(f"JobID:|{WORD}|,JobArrayID:|,")
    assert asked.endswith(",Name:")
    assert commands.marked(WORD)["SQUEUE_FORMAT"].startswith(f"{WORD}|%i|")


def test_nobody_else_on_the_machine_can_read_the_word() -> None:
    assert not any("-o" in argument.lower() for argument in commands.queue())


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x1e", "\x85", "\u2028"])
def test_only_a_newline_ends_a_line(end: str) -> None:
    assert [job.job_id for job in queue.jobs(f"{LINE}{end}9{LINE}", WORD)] == [1]


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"tres_per_node": "gres:gpu:2", "tres_per_job": "N/A"}, 4),
        ({"tres_per_node": "gres:gpu:v100:2", "tres_per_job": "N/A"}, 4),
        ({"tres_per_node": "gres/gpu=1", "tres_per_job": "N/A"}, 2),
        ({"tres_per_node": "gres/gpu:v100=1", "tres_per_job": "N/A"}, 2),
        ({"tres_per_node": "gres:gpu", "tres_per_job": "N/A"}, 2),
        ({"tres_per_node": "gres:gpu:a100:1,gres:gpu:t4:2", "tres_per_job": "N/A"}, 6),
        ({"tres_per_node": "gres:gpu:1g.10gb:2", "tres_per_job": "N/A"}, 4),
        ({"tres_per_node": "gres:gpu:1g.10gb", "tres_per_job": "N/A"}, 2),
        # Since 23.11: gres_prepend_tres_type() in src/interfaces/gres.c.
        ({"tres_per_node": "gres/gpu:2", "tres_per_job": "N/A"}, 4),
        ({"tres_per_node": "gres/gpu:a100:1,gres/gpu:t4:2", "tres_per_job": "N/A"}, 6),
        ({"tres_per_node": "gres/gpu:4090:2", "tres_per_job": "N/A"}, 4),
        ({"tres_per_node": "gres/gpu:nvidia_a100_1g.5gb+me:1", "tres_per_job": "N/A"}, 2),
        ({"tres_per_node": "gres/shard:2", "tres_per_job": "N/A"}, 0),
        # --gpus=a100:9: xfmt_tres() in src/common/proc_args.c.
        ({"tres_per_job": "gres/gpu:a100:9"}, 9),
        # --gpus-per-task=1 and --tres-per-task of 24.05.
        (
            {"tres_per_job": "N/A", "tres_per_task": "cpu=4,gres/gpu=1", "NumTasks": "8"},
            8,
        ),
        ({"tres_per_node": "gres:shard:2", "tres_per_job": "N/A"}, 0),
        ({"tres_per_job": "gres:gpu:9"}, 9),
        ({"tres_per_job": "N/A", "tres_per_task": "gres:gpu:1", "NumTasks": "8"}, 8),
        ({"tres_per_job": "N/A"}, 0),
    ],
)
def test_gpus_are_counted_however_they_were_asked_for(fields: dict[str, str], gpus: int) -> None:
    assert the_job(line(**fields)).gpus == gpus


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node001", ["node001"]),
        ("node[001-003,7],gpu1", ["node001", "node002", "node003", "node7", "gpu1"]),
        ("r[1-2]n[08-09]", ["r1n08", "r1n09", "r2n08", "r2n09"]),
        ("", []),
        ("(null)", []),
    ],
)
def test_lists_of_nodes_are_written_out(text: str, names: list[str]) -> None:
    assert list(queue.node_names(text)) == names


def test_a_list_of_a_billion_nodes_is_not_written_out() -> None:
    with pytest.raises(UnreadableOutput):
        list(queue.node_names("node[0-999999999]"))


def test_an_empty_queue_is_no_mistake_but_foreign_words_are() -> None:
    assert queue.jobs("", WORD) == ()
    with pytest.raises(UnreadableOutput):
        queue.jobs("slurm_load_jobs error", WORD)


def test_the_shares_of_a_job_are_told_node_by_node() -> None:
    told = {
        "jobs": [
            {"job_id": 4, "gres_detail": ["gpu:v100:1(IDX:2)", "gpu:v100:2(IDX:0,3)"]},
            {"job_id": 5, "gres_detail": ["gpu:4(CNT:4)"]},
            {"job_id": 6, "gres_detail": []},
            {"job_id": 7, "gres_detail": ["gpu:a100:1(IDX:0),gpu:t4:2(IDX:2-3)"]},
        ]
    }
    assert queue.gpu_allocations(json.dumps(told)) == {
        4: (GpuAllocation(1, frozenset({2})), GpuAllocation(2, frozenset({0, 3}))),
        5: (GpuAllocation(4, None),),
        7: (GpuAllocation(3, frozenset({0, 2, 3})),),
    }


@pytest.mark.parametrize(
    "text", ["", "[]", '{"jobs": 3}', '{"jobs": [{"gres_detail": ["gpu:1"]}]}']
)
def test_json_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        queue.gpu_allocations(text)


@pytest.mark.parametrize(
    ("told", "used"),
    [
        ("gpu:v100:3(IDX:0-2)", {0, 1, 2}),
        ("gpu:v100:0(IDX:N/A)", set()),
        ("gpu:l4:1(IDX:0),shard:l4:2(IDX:1,3)", {0, 1, 3}),
        ("", set()),
        ("gpu:4", None),
        ("shard:l4:5(4/4,1/4,0/4)", None),
    ],
)
def test_which_gpus_of_a_node_are_in_use_is_known_only_by_number(
    told: str, used: set[int] | None
) -> None:
    assert parsing.gpus_in_use(told) == used


def test_a_node_tells_its_state_and_an_administrators_reason() -> None:
    node_line = (
        "NodeName=n1 NodeAddr=n1 CPUTot=8 RealMemory=100 State=IDLE+DRAIN Partitions=sxm2  "
        "Gres=gpu:2 GresUsed=gpu:0 Reason=fan broken [root@2026-11-21T03:01:25]"
    )
    (node,) = parsing.nodes(node_line)["sxm2"]
    assert (node.state, node.reason) == ("IDLE+DRAIN", "fan broken")
