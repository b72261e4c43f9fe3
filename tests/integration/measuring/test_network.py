"""iperf3 in a real job over two nodes, and who is let in."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from links import iperf
from links.server import free_port
from reports import network as report
from tests.instance import PREFIX, ROOT, USERS, Instance
from tests.pages import how_to, lines
from tests.waiting import until

pytestmark = pytest.mark.long

BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"


@pytest.fixture
def home(portal: Instance) -> Iterator[Path]:
    account = pwd.getpwnam(USERS[1])
    folder = Path(account.pw_dir) / "measured"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.chown(folder, account.pw_uid, account.pw_gid)
    yield folder
    shutil.rmtree(folder)


def test_two_nodes_are_measured_in_both_directions(portal: Instance, home: Path) -> None:
    words = {
        "--nodes=4": "--parsable --nodes=2 --time=5 --mem=1G --output=log",
        "python3 ~/templates/benchmarks": f"/usr/bin/python3 -B {BENCHMARKS}",
        "~/logs/run1": f"{home}/run --seconds 1 --omit 0 --repeats 1 --streams 2",
    }
    (argv,) = lines(how_to("measure-the-network.md", 0, words))
    job = portal.slurm(*argv, user=USERS[1], home=str(home)).strip()
    until(lambda: job not in portal.jobs(), seconds=120, what="the measurement is over")
    file = home / "run" / "summary.json"
    assert file.exists(), (home / "log").read_text()
    summary = json.loads(file.read_text())
    jsonschema.validate(summary, json.loads((BENCHMARKS / "schema.json").read_text()))
    one, two = (f"{PREFIX}node00{number}" for number in (1, 2))
    assert [(rate["from"], rate["to"]) for rate in summary["figures"]["rates"]] == [
        (one, two),
        (two, one),
    ]
    assert all(part["gbit_per_second"] > 0.1 for part in summary["parts"])
    assert [host["name"] for host in summary["hosts"]] == [one, two]
    assert {one, two} <= set(summary["samples"])
    assert not (home / "run" / ".keys").exists()


NAS = ("127.0.0.9", "127.0.0.10")
"""Stand-ins for the NAS's addresses, on this machine: no such NAS is at hand."""
# What a site's program does; its own would do it on the NAS, over ssh for example.
SERVE = f"""\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
exec {iperf.IPERF} --server --one-off --daemon --bind "$1" --port "$2"
"""


@pytest.fixture
def listening() -> Iterator[str]:
    """An iperf3 server on another address, as a NAS's administrator would start it."""
    port = free_port(NAS[0])
    argv = [iperf.IPERF, "--server", "--forceflush", f"--bind={NAS[0]}", f"--port={port}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            assert any("Server listening" in line for line in server.stdout)
            yield f"{NAS[0]}:{port}"
        finally:
            server.kill()


def measured(portal: Instance, home: Path, nodes: int, *options: str) -> str:
    """Let a job measure as the page says; return its log."""
    words = {
        "--nodes=4": f"--parsable --nodes={nodes} --time=5 --mem=1G --output=log",
        "python3 ~/templates/benchmarks": f"/usr/bin/python3 -B {BENCHMARKS}",
        "~/logs/run2": f"{home}/run --seconds 1 --omit 0 --repeats 1",
        "--nas-addresses 10.1.0.9,10.1.0.10": " ".join(options),
    }
    (argv,) = lines(how_to("measure-the-network.md", 1, words))
    job = portal.slurm(*argv, user=USERS[1], home=str(home)).strip()
    until(lambda: job not in portal.jobs(), seconds=120, what="the measurement is over")
    return (home / "log").read_text()


def test_each_node_is_measured_to_a_server_that_listens_on_the_nas(
    portal: Instance, home: Path, listening: str
) -> None:
    log = measured(portal, home, 2, "--streams 1,2 --pairs none", f"--nas-addresses {listening}")
    file = home / "run" / "summary.json"
    assert file.exists(), log
    summary = json.loads(file.read_text())
    jsonschema.validate(summary, json.loads((BENCHMARKS / "schema.json").read_text()))
    one, two = (f"{PREFIX}node00{number}" for number in (1, 2))
    assert [part["name"] for part in summary["parts"]] == [
        f"{node} to {listening}, {streams} streams, run 1"
        for node in (one, two)
        for streams in (1, 2)
    ]
    for part in summary["parts"]:
        assert part["to_nas"]
        assert (part["address"], part["nas_server"]) == (NAS[0], None)
        assert part["gbit_per_second"] > 0.1
    assert f"| {one} | NAS {listening} | 2 |" in report.markdown(summary)


def test_the_sites_program_starts_a_server_for_each_measurement_of_the_nas(
    portal: Instance, home: Path
) -> None:
    program = home / "serve"
    program.write_text(SERVE)
    program.chmod(0o755)
    ends = [f"{address}:{free_port(address)}" for address in NAS]
    options = ("--streams 2", f"--nas-addresses {','.join(ends)}")
    log = measured(portal, home, 1, *options)
    one = f"{PREFIX}node001"
    host, port = ends[0].split(":")
    (said,) = (home / "run" / "error.txt").read_text().splitlines()
    assert said.startswith(f"Process 0 on {one}: "), log
    assert f"{one} at {host}, port {port} (Connection refused): start one there" in said, log
    assert said.endswith("nas_server"), log
    assert "Traceback" not in log

    shutil.rmtree(home / "run")
    log = measured(portal, home, 1, *options, f"--nas-server {program}")
    file = home / "run" / "summary.json"
    assert file.exists(), log
    summary = json.loads(file.read_text())
    found = [(part["from"], part["to"], part["nas_server"]) for part in summary["parts"]]
    assert found == [(one, end, str(program)) for end in ends]
    assert (home / "calls").read_text().splitlines() == [end.replace(":", " ") for end in ends]
    assert f"{program} started iperf3 before each measurement" in report.markdown(summary)


def test_outside_a_job_it_says_what_to_do(portal: Instance, home: Path) -> None:
    argv = ["/usr/bin/python3", "-B", str(BENCHMARKS / "network.py"), f"--results={home}/run"]
    done = subprocess.run(
        argv, user=USERS[1], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "two nodes are needed" in done.stderr
    assert "submit it to Slurm" in done.stderr
    assert "Traceback" not in done.stderr


def test_only_who_knows_the_password_is_measured_with(portal: Instance, tmp_path: Path) -> None:
    keys = iperf.new_keys(tmp_path / "keys")
    argv = [sys.executable, "-B", str(BENCHMARKS / "links/server.py"), f"--keys={keys.folder}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            address, port = server.stdout.readline().split()
            told = iperf.client(address, int(port), 1, 0, keys=keys)
            stranger = [word for word in told if "user" not in word and "rsa" not in word]
            with pytest.raises(iperf.IperfError, match="authorization failed"):
                iperf.figures(_printed(stranger, {}))
            with pytest.raises(iperf.IperfError, match="authorization failed"):
                iperf.figures(_printed(told, {"IPERF3_PASSWORD": "guessed"}))
            assert iperf.figures(_printed(told, keys.variables))["gbit_per_second"] > 0.1
            # For one measurement.
            assert server.wait(30) == 0
        finally:
            server.kill()


def _printed(argv: list[str], variables: dict[str, str]) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        argv, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout
