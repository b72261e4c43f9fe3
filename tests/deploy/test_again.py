"""A second deployment changes nothing and disturbs nobody."""

import os
import re
from collections.abc import Callable

import pytest

from tests import faults
from tests.deploy.deploying import deploy
from tests.instance import USERS, Instance
from tests.site.recap import changed_tasks
from tests.visitor import Visitor


@pytest.mark.long  # A site's hosts are deployed again, too.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("strategy", ["one_process", "linear"])
def test_a_second_run_changes_nothing_and_keeps_a_session_alive(
    portal: Instance, visit: Callable[[str], Visitor], strategy: str
) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=1)
    server = user.run("import os; print(os.getppid())").strip()
    done = deploy("test", ANSIBLE_STRATEGY=strategy)
    assert done.returncode == 0, done.stdout[-2000:]
    recap = re.search(r"changed=(\d+)\s+unreachable=0\s+failed=0", done.stdout)
    assert recap, done.stdout[-2000:]
    assert recap.group(1) == "0", changed_tasks(done.stdout)
    assert portal.jobs(user=USERS[0]) == [job_id]
    assert user.run("import os; print(os.getppid())").strip() == server


@pytest.mark.usefixtures("portal")
@pytest.mark.parametrize("service", ["hub", "proxy", "slurmctld"])
def test_services_may_use_all_cores(service: str) -> None:
    pid = faults.pid_of(service)
    assert os.sched_getaffinity(pid) == os.sched_getaffinity(os.getpid())
