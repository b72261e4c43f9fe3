"""How an all-reduce is judged, and how NCCL's own table is read."""

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interconnect import Group, counts, doubled, groups, measure_nccl, parts, rates_of
from links import bus, nccl_tests
from links.nccl_tests import TableError
from measurement import steps
from measurement.choices import SettingError
from measurement.steps import Nodes, StepError
from reports.comparison import Side, compared, sides
from reports.interconnect import markdown

DATA = Path(__file__).parents[3] / "data" / "all_reduce_perf_of_nccl-tests_2.txt"


def test_the_bus_bandwidth_is_that_of_a_case_worked_by_hand() -> None:
    # 10^9 bytes in 0.1 s are 10 GB/s; four processes send 2 x 3/4 of it each: 15 GB/s.
    assert bus.gb_per_second(10**9, 100_000) == pytest.approx(10)
    assert bus.bus_gb_per_second(10**9, 100_000, 4) == pytest.approx(15)
    # Two send as much as there is; with many it comes to twice as much.
    assert bus.bus_gb_per_second(10**9, 100_000, 2) == pytest.approx(10)
    assert bus.bus_gb_per_second(10**9, 100_000, 1000) == pytest.approx(19.98)


def test_one_link_has_one_bus_bandwidth_however_many_share_it() -> None:
    # A ring of links of 5 GB/s each: each carries 2(n-1)/n of the message.
    for processes in (2, 8, 32):
        microseconds = 10**9 * 2 * (processes - 1) / processes / 5e9 * 1e6
        assert bus.bus_gb_per_second(10**9, microseconds, processes) == pytest.approx(5)


def test_sizes_go_from_the_least_to_the_most() -> None:
    assert bus.sizes(1024, 65536, 4) == [1024, 4096, 16384, 65536]
    assert bus.sizes(4, 40, 2) == [4, 8, 16, 32]
    for least, most, factor in ((0, 8, 2), (6, 8, 2), (8, 4, 2), (4, 8, 1)):
        with pytest.raises(ValueError, match="cannot be"):
            bus.sizes(least, most, factor)


def test_nccls_own_table_is_read_and_agrees_with_the_formula() -> None:
    # The form of release 2; the rows are published, of eight GPUs in
    # https://github.com/kvcache-ai/Mooncake/pull/3484
    rows = nccl_tests.read(DATA.read_text())
    assert [row["bytes"] for row in rows] == [2**power for power in range(15, 26)]
    assert (rows[0]["microseconds"], rows[-1]["bus_gb_per_second"]) == (18.66, 300.51)
    for row in rows:
        worked_out = bus.bus_gb_per_second(row["bytes"], row["microseconds"], 8)
        assert worked_out == pytest.approx(row["bus_gb_per_second"], rel=0.002)


OLD = """\
#                                                    out-of-place
#       size         count    type   redop     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    204.8    5.12    8.96  {}
"""


def test_a_table_of_an_older_release_has_other_columns() -> None:
    (row,) = nccl_tests.read(OLD.format("0"))
    assert (row["bytes"], row["microseconds"], row["bus_gb_per_second"]) == (2**20, 204.8, 8.96)


def test_what_is_no_table_is_told() -> None:
    with pytest.raises(TableError, match="no CUDA-capable device"):
        nccl_tests.read("test.cu: CUDA failure: no CUDA-capable device is detected\n")
    with pytest.raises(TableError, match="3 sums of 1048576 bytes are wrong"):
        nccl_tests.read(OLD.replace("error", "#wrong").format("3"))


def of_eight_gpus() -> str:
    """Return the captured output with all of its GPUs: it names the first alone."""
    lines = DATA.read_text().splitlines()
    (first,) = [line for line in lines if "Rank  0" in line]
    others = [first.replace("Rank  0", f"Rank {rank:2}") for rank in range(1, 8)]
    return "\n".join([*others, *lines])


def test_gpus_that_measured_by_themselves_are_told() -> None:
    whole = of_eight_gpus()
    assert nccl_tests.read(whole, 8) == nccl_tests.read(whole)
    with pytest.raises(TableError, match="8 GPUs took part, not 16"):
        nccl_tests.read(whole, 16)
    # Without MPI each process is rank 0 of its own.
    alone = DATA.read_text()
    with pytest.raises(TableError, match="by themselves: was all_reduce_perf built with MPI=1"):
        nccl_tests.read(f"{alone}\n{alone}", 2)


def test_gpus_are_measured_over_nodes_and_without_peers_too(tmp_path: Path) -> None:
    program = tmp_path / "all_reduce_perf"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    s = argparse.Namespace(nodes="", processes="", repeats=1, all_reduce_perf=str(program))
    names = list(parts(s, Nodes(2, in_job=True, cores=8, tasks=4), gpus=4))
    assert names == [
        "4 processes on 1 node, run 1",
        "8 processes on 2 nodes, run 1",
        "4 processes on 1 node, peer-to-peer off, run 1",
        "NCCL's tests, 4 GPUs on 1 node, run 1",
        "NCCL's tests, 8 GPUs on 2 nodes, run 1",
        "copies between GPUs",
    ]
    # A step cannot have more processes on a node than the job.
    alone = list(parts(s, Nodes(2, in_job=True, cores=1, tasks=1), gpus=4))
    assert not [name for name in alone if "peer-to-peer off" in name]


SRUN = """#!/bin/bash
printf '%s\\n' "$@" > {argv}
cat {printed}
cat {said} >&2
exit {status}
"""
# Of Slurm 22.05, for a plugin that is not installed.
NO_PMIX = """\
srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files
srun: error: cannot find mpi plugin for mpi/pmix
srun: error: MPI: Cannot create context for mpi/pmix
srun: error: MPI: Unable to load any plugin
srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types
"""
PROGRAM = Path("/opt/nccl-tests/all_reduce_perf")
ON_TWO_NODES = Group(nodes=2, each=4)
Measure = Callable[..., tuple[dict[str, Any], list[str]]]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Run NCCL's test with a stand-in for srun, as there are no GPUs here.

    Called with the processes, and what srun prints, says of errors and ends with, it returns the
    row and the arguments of srun.
    """
    argv, printed_file, said_file, stand_in = (
        tmp_path / name for name in ("argv", "printed", "said", "srun")
    )
    monkeypatch.setattr(steps, "SRUN", str(stand_in))

    def measure(
        group: Group, printed: str, said: str = "", status: int = 0
    ) -> tuple[dict[str, Any], list[str]]:
        printed_file.write_text(printed)
        said_file.write_text(said)
        files = {"argv": argv, "printed": printed_file, "said": said_file}
        quoted = {name: shlex.quote(str(file)) for name, file in files.items()}
        stand_in.write_text(SRUN.format(status=status, **quoted))
        stand_in.chmod(0o755)
        asked = argparse.Namespace(least=1024, most=2**25, factor=4, iterations=50, warmup=7)
        row = measure_nccl(asked, Nodes(2, in_job=True, cores=16, tasks=4), PROGRAM, group, 1)
        return row, argv.read_text().splitlines()

    return measure


def test_over_nodes_nccls_test_is_a_process_for_each_gpu_which_pmix_joins(
    measured: Measure,
) -> None:
    row, argv = measured(ON_TWO_NODES, of_eight_gpus())
    options, program = argv[: argv.index(str(PROGRAM))], argv[argv.index(str(PROGRAM)) :]
    assert {"--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--mpi=pmix"} <= set(options)
    sizes, rounds = ["-b", "1024", "-e", str(2**25), "-f", "4"], ["-n", "50", "-w", "7"]
    assert program[1:] == [*sizes, "-g", "1", *rounds]
    assert (row["engine"], row["nodes"], row["processes"]) == ("all_reduce_perf", 2, 8)
    assert len(row["sizes"]) == 11
    assert row["sizes"][-1]["bus_gb_per_second"] == pytest.approx(300.51, rel=0.002)
    assert "missing" not in row


def test_on_one_node_nccls_test_is_one_process_with_all_gpus(measured: Measure) -> None:
    row, argv = measured(Group(nodes=1, each=8), of_eight_gpus())
    assert {"--nodes=1", "--ntasks=1"} <= set(argv)
    assert not [word for word in argv if word.startswith("--mpi")]
    assert argv[-6:] == ["-g", "8", "-n", "50", "-w", "7"]
    assert (row["nodes"], row["processes"]) == (1, 8)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"printed": "", "said": NO_PMIX, "status": 1}, "cannot find mpi plugin for mpi/pmix"),
        ({"printed": DATA.read_text()}, "1 GPUs took part, not 8: was all_reduce_perf built with"),
        ({"printed": ""}, "there is no table"),
    ],
)
def test_what_nccls_test_lacks_over_nodes_is_told_in_its_row(
    given: dict[str, Any], told: str, measured: Measure
) -> None:
    row, _ = measured(ON_TWO_NODES, **given)
    assert told in row["missing"]
    assert (row["engine"], row["nodes"], row["run"]) == ("all_reduce_perf", 2, 1)
    # The others' figures are there all the same, and the report has the reason.
    part = {"name": "NCCL's tests, 8 GPUs on 2 nodes, run 1", **row}
    text = markdown([{**summary(run(1, 10, 1000)), "parts": [part]}])
    assert "**gloo, 4 processes on 2 nodes**" in text
    assert f"{part['name']} could not be measured: {row['missing']}" in text


def test_what_nccls_test_lacks_on_one_node_ends_the_measurement(measured: Measure) -> None:
    with pytest.raises(StepError, match="ended with 2: Test NCCL failure"):
        measured(Group(nodes=1, each=8), "", "Test NCCL failure: unhandled cuda error", 2)


def test_groups_are_all_that_have_somebody_to_add_up_with() -> None:
    assert doubled(1) == "1"
    assert doubled(8) == "1,2,4,8"
    found = groups([1, 2, 3], [1, 4])
    assert [group.processes for group in found] == [4, 2, 8, 3, 12]
    assert found[1].name == "2 processes on 2 nodes"
    with pytest.raises(SettingError, match="an all-reduce needs two processes"):
        groups([1], [1])


@pytest.mark.parametrize("asked", ["", "0", "two", "1,,2", "-1", "5"])
def test_a_number_that_cannot_be_is_refused_by_its_name(asked: str) -> None:
    with pytest.raises(SettingError, match="processes is"):
        counts("processes", asked, 4)


def run(number: int, *microseconds: float) -> dict[str, Any]:
    times = [
        {"bytes": size, "microseconds": time}
        for size, time in zip((1024, 2**20), microseconds, strict=True)
    ]
    return {"engine": "gloo", "nodes": 2, "run": number, **bus.measured(times, 4)}


def test_runs_of_a_size_are_put_beside_each_other() -> None:
    small, large = rates_of([run(1, 10, 1000), run(2, 30, 2000)])
    assert (small["processes"], small["bytes"], small["runs"]) == (4, 1024, 2)
    assert (small["microseconds"], small["microseconds_highest"]) == (20, 30)
    # 2^20 bytes x 1.5 in 1 ms and 2 ms.
    assert large["bus_gb_per_second_highest"] == pytest.approx(1.572864)
    assert large["bus_gb_per_second"] == pytest.approx((1.572864 + 0.786432) / 2)


def test_two_measurements_can_be_compared() -> None:
    def side(name: str, *parts: dict[str, Any]) -> Side:
        named = [{**part, "name": f"4 processes on 2 nodes, run {part['run']}"} for part in parts]
        (found,) = sides(name, {"benchmark": "interconnect", "parts": named})
        return found

    before = side("before", run(1, 10, 2000), run(2, 10, 2000))
    after = side("after", run(1, 10, 1000), run(2, 10, 1000))
    (row,) = compared(before, after)
    assert row.what == "4 processes on 2 nodes"
    assert row.ratio == pytest.approx(2)


def summary(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "date": "2026-11-22T03:00:00+00:00",
        "configuration": {"factor": 4},
        "figures": {"rates": rates_of(parts)},
        "parts": [],
    }


def test_the_report_has_a_line_for_each_size() -> None:
    lines = markdown([summary(run(1, 10, 1000), run(2, 30, 2000))]).splitlines()
    assert lines[0] == "**gloo, 4 processes on 2 nodes**"
    assert "| 1 MiB | 1,500 | 1.18 | 0.786 to 1.57 |" in lines


NODE: dict[str, Any] = {
    "node": "n1",
    "gpus": ["V100", "V100"],
    "gb_per_second": [[740.0, 48.3], [48.1, 741.0]],
    "microseconds": [[1.9, 2.5], [2.6, 1.8]],
    "is_direct": [[True, True], [False, True]],
}


def reported(**more: Any) -> str:
    """Return the report of a node's copies."""
    copies = {"name": "copies between GPUs", "peers": [NODE | more]}
    return markdown([{**summary(), "parts": [copies]}])


def table_of(title: str, report: str) -> list[str]:
    """Return the rows below a title."""
    _, _, after = report.partition(f"**{title}**\n\n")
    return after.partition("\n\n")[0].splitlines()[2:]


def test_the_report_shows_copies_between_gpus_and_those_that_go_through_the_host() -> None:
    text = reported()
    assert "| 0 | 740 | 48.3 |" in text
    assert "| 1 | 2.6 | 1.8 |" in text
    assert "Through the host's memory: 1 to 0." in text
    assert "both ways" not in text, "an earlier version has not measured them"


def test_the_report_shows_copies_both_ways_at_once() -> None:
    text = reported(both_ways_gb_per_second=[[740.0, 93.1], [92.4, 741.0]])
    rows = table_of("n1: GB/s of large copies both ways at once", text)
    assert rows == ["| 0 | 740 | 93.1 |", "| 1 | 92.4 | 741 |"]
    assert table_of("n1: GB/s of a large copy", text) == [
        "| 0 | 740 | 48.3 |",
        "| 1 | 48.1 | 741 |",
    ]


def test_the_report_holds_copies_with_peer_to_peer_on_against_off_and_the_papers() -> None:
    off = {
        "gb_per_second_without_peers": [[740.0, 9.0], [11.0, 741.0]],
        "microseconds_without_peers": [[1.9, 18.0], [20.0, 1.8]],
    }
    text = reported(**off)
    bandwidths = table_of("n1: GB/s of a large copy, peer-to-peer off", text)
    assert bandwidths == ["| 0 | 740 | 9 |", "| 1 | 11 | 741 |"]
    times = table_of("n1: µs of a small, peer-to-peer off", text)
    assert times == ["| 0 | 1.9 | 18 |", "| 1 | 20 | 1.8 |"]
    both = "Copies between two GPUs, peer-to-peer on and off"
    papers = "| papers: V100-SXM2 on NVLink | 47.7 |  | 6.4 to 6.8 | 18.3 |"
    # From 1 to 0 there is none that is on, so it is in neither mean.
    assert table_of(both, text) == ["| n1 | 48.3 | 9 | 2.5 | 18 |", papers]
    assert table_of(both, reported()) == ["| n1 | 48.3 |  | 2.5 |  |", papers]
