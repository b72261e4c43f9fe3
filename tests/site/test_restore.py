"""The head is lost, and another machine takes its place."""

from tests.hosts import Hosts
from tests.site.conftest import Site
from tests.site.test_faults import SERVER, answers
from tests.visitor import Visitor
from tests.waiting import until

PORTAL = "/usr/local/sbin/portal"
BACKUP = "root/backup.tar.gz"
# As docs/how-to/back-up-and-restore.md says.
STAGES = ("validate", "filesystems", "slurm", "portal")
WRITERS = ("portal-hub", "portal-proxy", "portal-slurmctld", "portal-slurmdbd")


def test_a_new_head_takes_over_the_sessions_that_run(
    portal: Site, hosts: Hosts, user: Visitor
) -> None:
    kernel = user.open_kernel()
    user.run_in(kernel, "kept = 6 * 7")
    before, jobs = user.run(SERVER), portal.jobs(user="user1")
    hosts.head.run(PORTAL, "backup", f"/{BACKUP}", seconds=120)
    backup = (hosts.head.files / BACKUP).read_bytes()

    hosts.replace_head()
    hosts.deploy("--limit=head", *(f"--stage={stage}" for stage in STAGES))
    assert portal.jobs() == []
    (hosts.head.files / BACKUP).write_bytes(backup)
    hosts.head.run("/bin/systemctl", "stop", *WRITERS, seconds=120)
    hosts.head.run(PORTAL, "restore", f"/{BACKUP}", "--replace", seconds=120)
    hosts.deploy()

    until(lambda: answers(user), seconds=60, what="the session answers")
    assert portal.jobs(user="user1") == jobs
    assert user.run(SERVER) == before
    assert user.run_in(kernel, "print(kept)") == "42\n"
    assert user.http.get("/hub/home").url.path == "/hub/home", "the browser is still logged in"
