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


def test_outside_a_job_it_says_what_to_do(portal: Instance, home: Path) -> None:
    argv = ["/usr/bin/python3", "-B", str(BENCHMARKS / "network.py"), f"--results={home}/run"]
    done = subprocess.run(
        argv, user=USERS[1], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "a network needs two nodes" in done.stderr
    assert "submit it to Slurm" in done.stderr
    assert "Traceback" not in done.stderr


def test_only_who_knows_the_password_is_measured_with(portal: Instance, tmp_path: Path) -> None:
    keys = iperf.new_keys(tmp_path / "keys")
    argv = [sys.executable, "-B", str(BENCHMARKS / "links/server.py"), f"--keys={keys.folder}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            address, port = server.stdout.readline().split()
            told = iperf.client(keys, address, int(port), 1, 0)
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
