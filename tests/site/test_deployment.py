"""The example's inventory on three hosts: deployed, deployed again, upgraded, and used."""

import re

from tests.hosts import Hosts
from tests.site.conftest import Site
from tests.visitor import Visitor
from tests.waiting import until


def outcome(said: str) -> dict[str, dict[str, int]]:
    """Return the numbers of Ansible's recap for each host."""
    lines = re.findall(r"^(\w+) +: (ok=.*)$", said, re.MULTILINE)
    pairs = {host: re.findall(r"(\w+)=(\d+)", counts) for host, counts in lines}
    return {host: {key: int(number) for key, number in found} for host, found in pairs.items()}


def changed_tasks(said: str) -> list[str]:
    """Return the names of the tasks that changed something."""
    tasks = said.split("\nTASK ")[1:]
    return [task.partition("]")[0] for task in tasks if re.search("^changed:", task, re.MULTILINE)]


def test_a_deployment_that_failed_half_way_can_be_repeated(half_way: str, portal: Site) -> None:
    assert outcome(half_way)["compute2"]["failed"] == 1, half_way
    assert outcome(half_way)["compute1"]["failed"] == 0, half_way
    assert portal.states() == {"compute1": "idle", "compute2": "idle"}


def test_a_session_runs_on_a_compute_host(portal: Site, user: Visitor, neighbour: Visitor) -> None:
    asked = "import socket; print(socket.gethostname())"
    assert (user.run(asked), neighbour.run(asked)) == ("compute1\n", "compute2\n")
    assert (portal.node_of(user), portal.node_of(neighbour)) == ("compute1", "compute2")


def test_a_session_reads_and_writes_the_nas(
    hosts: Hosts, user: Visitor, neighbour: Visitor
) -> None:
    written = "import pathlib; p = pathlib.Path('~/isilon/user1/x').expanduser()\n"
    assert user.run(f"{written}print(p.write_text('from compute1'), p.chmod(0o644))") == "13 None\n"
    assert neighbour.run("print(open('/mnt/isilon/user1/x').read())") == "from compute1\n"
    assert hosts.head.run("/usr/bin/stat", "-c", "%U", "/mnt/isilon/user1/x") == "user1\n"
    assert "Permission denied" in neighbour.run("open('/mnt/isilon/user1/y', 'w')")


def test_the_sample_job_runs_on_both_hosts(portal: Site, user: Visitor) -> None:
    screen = user.type_in_terminal("cd; sbatch ~/templates/slurm/sample.job; echo en''d", "end")
    match = re.search(r"Submitted batch job (\d+)", screen)
    assert match, screen
    job = match.group(1)
    until(lambda: portal.job(job)["JobState"] == "COMPLETED", seconds=90, what="the job has ended")
    output = user.session("GET", f"/api/contents/slurm-{job}.out").json()["content"]
    tasks = re.findall(r"^task (\d) on (\S+): (\S+)$", output, re.MULTILINE)
    assert sorted(number for number, _, _ in tasks) == list("01234567"), output
    assert {(node, host) for _, node, host in tasks} == {
        ("compute1", "compute1"),
        ("compute2", "compute2"),
    }


def test_an_upgrade_keeps_sessions_and_a_second_run_changes_nothing(
    portal: Site, hosts: Hosts, user: Visitor, neighbour: Visitor
) -> None:
    jobs = portal.jobs()
    processes = [each.run("import os; print(os.getppid())") for each in (user, neighbour)]
    sources = hosts.upgrade()
    hub = hosts.head.run("/bin/systemctl", "show", "--value", "-p", "MainPID", "portal-hub")
    assert outcome(hosts.deploy(sources=sources))["head"]["changed"] > 0
    assert hub != hosts.head.run("/bin/systemctl", "show", "--value", "-p", "MainPID", "portal-hub")
    again = hosts.deploy(sources=sources)
    assert {numbers["changed"] for numbers in outcome(again).values()} == {0}, changed_tasks(again)
    assert portal.jobs() == jobs
    assert [each.run("import os; print(os.getppid())") for each in (user, neighbour)] == processes


def test_it_can_be_asked_what_it_would_change(hosts: Hosts, portal: Site) -> None:
    said = hosts.deploy("--check")
    assert {numbers["failed"] for numbers in outcome(said).values()} == {0}
