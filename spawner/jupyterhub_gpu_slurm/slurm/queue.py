"""The cluster's queue as records: the jobs of all users, and the GPUs that they hold.

Raises `UnreadableOutput` for what does not look like Slurm's own output.
"""

import json
import re
from collections.abc import Iterator

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm import parsing
from jupyterhub_gpu_slurm.slurm.commands import QUEUE_FIELDS
from jupyterhub_gpu_slurm.slurm.records import GpuAllocation, QueuedJob

# gres:gpu | gres:gpu:2 | gres:gpu:v100:2 (22.05); gres/gpu:2 | gres/gpu:4090:2 (23.11 and later);
# gres/gpu=2 | gres/gpu:v100=2
_REQUEST = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?::([^:,=]+))??(?:[:=](\d+))?(?=,|$)", re.ASCII)
# r[1-2]n[01-03,7]: the first range, with what is before and after it.
_RANGE = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]((?:[^\[\],]|\[[^\[\]]*\])*)")
_NAMES = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")
_MOST_NODES = 20_000


def jobs(text: str, word: str) -> tuple[QueuedJob, ...]:
    """Read the answer to `commands.queue` that shows jobs.

    Lines without the question's word are the rest of a name with a newline in it.
    """
    found = []
    for line in text.split("\n"):
        job_id, mark, rest = line.partition(f"|{word}|")
        if mark and job_id.isdecimal():
            fields = [field.strip() for field in rest.split("|", len(QUEUE_FIELDS) - 1)]
            if len(fields) != len(QUEUE_FIELDS):
                raise UnreadableOutput(f"squeue printed {rest!r} for a job.")
            found.append(_job(int(job_id), fields))
    if text.strip() and not found:
        raise UnreadableOutput(f"squeue printed {text[:100]!r} for jobs.")
    return tuple(found)


def _job(job_id: int, fields: list[str]) -> QueuedJob:
    label, state, user, partition, nodes, tasks, *requests = fields[:9]
    submitted, start, end, node_list, reason, name = fields[9:]
    return QueuedJob(
        job_id=job_id,
        label=label,
        slurm_state=state,
        user=user,
        partition=partition,
        nodes=tuple(node_names(node_list)),
        gpus=_gpus(requests, _count(nodes), _count(tasks)),
        reason=parsing.known(reason),
        submitted=parsing.moment(submitted),
        start=parsing.moment(start),
        end=parsing.moment(end),
        name="".join(letter for letter in name if letter.isprintable()),
    )


def _gpus(requests: list[str], nodes: int, tasks: int) -> int:
    """Return the GPUs of a request that is told per node, per job or per task."""
    per_node, per_job, per_task = (
        sum(int(count or 1) for _, count in _REQUEST.findall(request)) for request in requests
    )
    return per_job or per_node * nodes or per_task * tasks


def _count(text: str) -> int:
    # "1-4" of a job that takes what it gets.
    first = text.partition("-")[0]
    return int(first) if first.isdecimal() else 1


def node_names(text: str) -> Iterator[str]:
    """Write out a list of nodes: ``node[001-002,7],gpu1``. See "hostlist" in scontrol(1)."""
    if parsing.known(text) is None:
        return
    written = 0
    for part in _NAMES.findall(text):
        for name in _written_out(part):
            written += 1
            if written > _MOST_NODES:
                raise UnreadableOutput(f"squeue printed more than {_MOST_NODES} nodes for a job.")
            yield name


def _written_out(part: str) -> Iterator[str]:
    match = _RANGE.fullmatch(part)
    if match is None:
        yield part
        return
    head, ranges, tail = match.groups()
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal()):
            raise UnreadableOutput(f"squeue printed {part!r} for nodes.")
        for number in range(int(first), int(last) + 1):
            for rest in _written_out(tail):
                yield f"{head}{number:0{len(first)}}{rest}"


def gpu_allocations(text: str) -> dict[int, tuple[GpuAllocation, ...]]:
    """Read the answer to `commands.gpu_allocations`.

    Of all that Slurm tells there, two things are read, which look alike from 22.05 on: the job's
    number, and ``gres_detail``, such as ``["gpu:v100:2(IDX:0-1)"]``, an entry for each node.
    """
    try:
        told = json.loads(text)["jobs"]
        return {
            int(job["job_id"]): tuple(_gpu_allocation(str(detail)) for detail in job["gres_detail"])
            for job in told
            if job.get("gres_detail")
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableOutput("squeue's JSON cannot be read.", detail=repr(error)) from error


def _gpu_allocation(detail: str) -> GpuAllocation:
    count, found, is_told = 0, set[int](), True
    for name, _, number, where in parsing.kinds(detail):
        count += number if name == "gpu" else 0
        told = parsing.indexes(where)
        is_told = is_told and told is not None
        found.update(told or ())
    return GpuAllocation(count, frozenset(found) if is_told else None)
