"""The example's inventory on three hosts: deployed, deployed again, upgraded, and used."""

import json
import re
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.debian.hosts import ADDRESSES, DOMAIN, NAS, Hosts
from tests.debian.machines import Machine
from tests.network.tls import answer, unchecking
from tests.pages import how_to, lines
from tests.servers.directories import PEOPLE
from tests.site.conftest import ASKED_AGAIN_SECONDS, Site, arguments, deployed_without
from tests.site.recap import changed_tasks, outcome
from tests.visitor import Visitor
from tests.waiting import until

# Of linux/if_ether.h and asm-generic/socket.h; Python has no names for them.
EVERYTHING, RECEIVE_BUFFER = 3, 33
SETTINGS = "/etc/data-scientist-portal/portal.toml"
# It ends with 1 where something has failed.
DOCTOR = (
    "import subprocess; argv = ['/usr/local/sbin/portal', 'doctor', '--json']; "
    "print(subprocess.run(argv, check=False, capture_output=True, text=True).stdout)"
)


@contextmanager
def wire(interface: str) -> Iterator[Callable[[], Iterator[bytes]]]:
    """Listen at a cable of the hosts' network; give what has come through it since."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING)) as tap:
        tap.bind((interface, 0))
        tap.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER, 64 << 20)
        tap.setblocking(False)

        def packets() -> Iterator[bytes]:
            with suppress(BlockingIOError):
                while True:
                    yield tap.recv(1 << 16)

        yield packets


def findings(host: Machine) -> dict[str, list[str]]:
    """Return what the doctor says of a host, by state."""
    found = defaultdict(list)
    for line in json.loads(host.run("/usr/bin/python3", "-c", DOCTOR)):
        found[line["state"]].append(f"{line['check']}: {line['found']}")
    return found


# It is the first, or that host has been deployed. An attached site's is proved each time.
@pytest.mark.long
def test_one_host_that_is_off_does_not_keep_the_others_from_being_deployed(
    without_one: str,
) -> None:
    found = outcome(without_one)
    assert found["compute2"]["unreachable"] == 1, without_one
    for host in ("head", "compute1"):
        assert (found[host]["failed"], found[host]["unreachable"]) == (0, 0), without_one
    assert "The login page comes through the proxy" in without_one


def test_a_deployment_that_failed_half_way_can_be_repeated(half_way: str, portal: Site) -> None:
    assert outcome(half_way)["compute2"]["failed"] == 1, half_way
    assert outcome(half_way)["compute1"]["failed"] == 0, half_way
    assert portal.states() == {"compute1": "idle", "compute2": "idle"}


def test_a_session_runs_on_a_compute_host(portal: Site, user: Visitor, neighbour: Visitor) -> None:
    asked = "import socket; print(socket.gethostname())"
    assert (user.run(asked), neighbour.run(asked)) == ("compute1\n", "compute2\n")
    assert (portal.node_of(user), portal.node_of(neighbour)) == ("compute1", "compute2")


def test_each_user_has_a_host_name_of_their_own(portal: Site, user: Visitor) -> None:
    assert portal.url == f"https://{DOMAIN}:8000"
    opened = user.http.get(f"/hub/user/{user.name}/lab")
    assert opened.status_code == 200
    assert opened.url.host == f"{user.name}.{DOMAIN}"
    assert user.http.get("/services/cluster/").url.host == f"cluster--service.{DOMAIN}"


def test_a_session_reads_and_writes_the_nas(
    hosts: Hosts, user: Visitor, neighbour: Visitor
) -> None:
    written = "import pathlib; p = pathlib.Path('~/isilon/user1/x').expanduser()\n"
    assert user.run(f"{written}print(p.write_text('from compute1'), p.chmod(0o644))") == "13 None\n"
    for mount in NAS:
        read = f"print(open('/mnt/{mount}/user1/x').read())"
        assert neighbour.run(read) == "from compute1\n", mount
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


def test_an_mpi_job_runs_on_both_hosts(portal: Site, user: Visitor) -> None:
    job = how_to("provision-gpu-hosts.md", 1, {"sbatch": "sbatch --output=mpi.out"}).strip()
    user.type_in_terminal(f"cd; sed -i d mpi.out; {job}; echo en''d", "end")

    def said() -> list[str]:
        found = user.session("GET", "/api/contents/mpi.out")
        return sorted(found.json()["content"].split()) if found.is_success else []

    until(lambda: len(said()) == 2, seconds=90, what="both processes have spoken")
    assert said() == ["compute1", "compute2"]


def test_what_hosts_say_to_each_other_cannot_be_read(
    portal: Site, hosts: Hosts, user: Visitor
) -> None:
    asked = "/api/contents/a-name-that-nothing-else-has"
    with wire("vb-compute1") as packets:
        assert user.session("GET", asked).status_code == 404
        until(lambda: user.http.get("/hub/api/").is_success, seconds=10, what="the hub answers")
        hosts.compute1.run("/usr/bin/id", "user3")
        said = b"".join(packets())
    # What is not encrypted would be seen: munge's and Slurm's words are signed only.
    assert len(said) > 1000
    assert asked.encode() not in said
    assert b"HTTP/1.1" not in said


@pytest.mark.parametrize("host", ["compute1", "head"])
def test_who_has_no_certificate_is_not_heard(
    portal: Site, hosts: Hosts, user: Visitor, host: str
) -> None:
    session = urlsplit(user.run("import os; print(os.environ['JUPYTERHUB_SERVICE_URL'])").strip())
    place = session if host == "compute1" else urlsplit(portal.settings["hub"]["api_url"])
    path = f"{session.path}api" if host == "compute1" else "/hub/api/"
    assert place.port
    # From the head, which the firewall of the nodes lets in; and as a session's own neighbour.
    with (hosts.head if host == "compute1" else hosts.compute1).network():
        address = ADDRESSES[host]
        socket.create_connection((address, place.port), timeout=10).close()
        assert answer(place.port, unchecking(), path, address) == b""


@pytest.mark.usefixtures("portal")
def test_a_backup_is_made_every_night(hosts: Hosts) -> None:
    timer = ("/bin/systemctl", "is-active", "portal-backup.timer")
    assert hosts.head.run(*timer) == "active\n"
    before = [line for line in findings(hosts.head)["warning"] if "backup" in line]
    assert [line.partition("/")[0] for line in before] == ["backup of hub and Slurm: there is no "]
    hosts.head.run("/bin/systemctl", "start", "portal-backup.service", seconds=120)
    made = hosts.head.files / "var/backups/data-scientist-portal"
    assert [file.stat().st_mode & 0o777 for file in made.iterdir()] == [0o600]
    assert any(line.startswith("backup of hub") for line in findings(hosts.head)["ok"])


def test_who_builds_images_has_the_same_numbers_on_every_host(hosts: Hosts, portal: Site) -> None:
    said = {host.run("/bin/cat", "/etc/subuid", "/etc/subgid") for host in hosts.all()}
    assert len(said) == 1
    lines = said.pop().splitlines()
    assert sorted(line.split(":")[0] for line in lines) == sorted([*PEOPLE, *PEOPLE])
    assert len(set(lines)) == len(PEOPLE)


@pytest.mark.usefixtures("portal")
def test_the_doctor_finds_every_host_well(hosts: Hosts) -> None:
    for host in hosts.all():
        found = findings(host)
        # Nothing here keeps the time of containers right.
        assert [line for line in found["failed"] if not line.startswith("clock:")] == []
        assert len(found["ok"]) > 10
    (of_users,) = [line for line in findings(hosts.head)["ok"] if line.startswith("host names: ")]
    assert of_users.endswith(f" below {DOMAIN}")


@pytest.mark.timeout(1800)
def test_an_upgrade_keeps_sessions_and_a_second_run_changes_nothing(
    portal: Site, hosts: Hosts, user: Visitor, neighbour: Visitor
) -> None:
    jobs = portal.jobs()
    processes = [each.run("import os; print(os.getppid())") for each in (user, neighbour)]
    sources = hosts.upgrade()
    hub = hosts.head.run("/bin/systemctl", "show", "--value", "-p", "MainPID", "portal-hub")
    _, _, upgrade = lines(how_to("deploy-a-cluster.md", 2))
    assert outcome(hosts.deploy(*arguments(upgrade), sources=sources))["head"]["changed"] > 0
    assert hub != hosts.head.run("/bin/systemctl", "show", "--value", "-p", "MainPID", "portal-hub")
    again = hosts.deploy(sources=sources)
    assert {numbers["changed"] for numbers in outcome(again).values()} == {0}, changed_tasks(again)
    assert portal.jobs() == jobs
    assert [each.run("import os; print(os.getppid())") for each in (user, neighbour)] == processes


@pytest.mark.timeout(1800)
def test_it_can_be_asked_what_it_would_change(hosts: Hosts, portal: Site) -> None:
    _, check, _ = lines(how_to("deploy-a-cluster.md", 2))
    assert arguments(check) == ["--check"]
    said = hosts.deploy(*arguments(check))
    assert {numbers["failed"] for numbers in outcome(said).values()} == {0}


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("portal")
def test_a_run_that_is_limited_leaves_the_other_machines_alone(hosts: Hosts) -> None:
    programs = [each.files / "usr/local/bin/portal" for each in (hosts.compute1, hosts.compute2)]
    for program in programs:
        program.unlink()
    for name, expected in (("compute1", [True, False]), ("compute2", [True, True])):
        said = hosts.deploy("--limit", name)
        found = outcome(said)
        assert found.keys() == {name}, said
        assert found[name]["failed"] == 0, said
        assert [program.exists() for program in programs] == expected


@pytest.mark.timeout(900 + ASKED_AGAIN_SECONDS)
def test_a_host_that_has_gone_off_is_remembered_and_the_others_are_deployed(
    portal: Site, hosts: Hosts
) -> None:
    # As a run leaves it that was interrupted between the two: newer than what runs.
    hosts.head.run("/usr/bin/touch", "/etc/systemd/system/portal-slurmctld.service")
    process = "/bin/systemctl", "show", "--value", "-p", "MainPID", "portal-slurmctld"
    before = hosts.head.run(*process)
    said = deployed_without(hosts, "compute2", "--stage", "slurm", "--stage", "verify")
    found = outcome(said)
    assert found["compute2"]["unreachable"] == 1, said
    assert [found[host]["failed"] for host in ("head", "compute1")] == [0, 0], said
    assert set(portal.states()) == {"compute1", "compute2"}
    assert hosts.head.run(*process) != before
    # A stage that does not know the hub's interpreter leaves the administrators' command.
    hosts.head.run("/usr/local/sbin/portal", "settings", "check", SETTINGS)
    # Slurm, too, finds it again; the tests that follow need both.
    up = {"compute1", "compute2"}
    until(
        lambda: {node for node, state in portal.states().items() if "*" not in state} == up,
        seconds=ASKED_AGAIN_SECONDS,
        what="both answer",
    )
