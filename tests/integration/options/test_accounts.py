"""Accounts and QOS that a real slurmdbd gives a user: in the form, and in a real job.

The hub of the test instance has a Slurm without an accounting, so the spawner is one without a hub,
and its script is submitted as the launcher would.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from jupyterhub.spawner import SpawnException

from jupyterhub_gpu_slurm.errors import OverLimit
from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.policy import AcceptedRequest
from jupyterhub_gpu_slurm.session.script import SessionProgram
from jupyterhub_gpu_slurm.traits import SpawnerTraits
from tests.instance import USERS, Instance
from tests.servers import accounting
from tests.servers.accounting import AccountedCluster
from tests.unit.spawner.stand_in import spawner_of

NAME = USERS[0]
"""In two accounts, one of which has two QOS."""
STRANGER = USERS[1]
"""In no account."""


@pytest.fixture(scope="module")
def accounted(portal: Instance) -> Iterator[AccountedCluster]:
    with accounting.running(portal, "AccountingStorageEnforce=associations,limits,qos") as cluster:
        cluster.enrol(NAME, high_in="physics")
        yield cluster


@pytest.fixture(autouse=True)
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the first spawner make a connection to its own cluster."""
    monkeypatch.setattr(SpawnerTraits, "_connection", None)


@pytest.fixture
def spawner(accounted: AccountedCluster) -> Iterator[Any]:
    settings = {"session_python": "/usr/bin/python3", "slurm_conf": str(accounted.conf)}
    with spawner_of(NAME, settings) as spawner:
        yield spawner


def granted(spawner: Any, **options: object) -> AcceptedRequest:
    granting = spawner.session_options.grant(options, lambda request, groups: None)
    accepted: AcceptedRequest = asyncio.run(granting)
    return accepted


def submitted(accounted: AccountedCluster, script: str) -> str:
    """Submit a script as the user; return what Slurm says of its job."""
    done = subprocess.run(
        ["/usr/sbin/runuser", "-u", NAME, "--", "/usr/bin/sbatch", "--parsable", "--hold"],
        input=script,
        capture_output=True,
        text=True,
        env={"SLURM_CONF": str(accounted.conf), "LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        cwd="/",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    job_id = done.stdout.strip()
    told = accounted.slurm("scontrol", "--oneliner", "show", "job", job_id)
    accounted.slurm("scancel", job_id)
    return told


def test_the_form_offers_the_users_accounts_and_qos(spawner: Any) -> None:
    form = asyncio.run(spawner.render_form())
    assert '<option value="">Your default (physics)</option>' in form
    assert '<option value="teaching">teaching</option>' in form
    assert '<option value="high">high</option>' in form


def test_who_has_no_account_is_offered_none(accounted: AccountedCluster) -> None:
    with spawner_of(STRANGER, {"slurm_conf": str(accounted.conf)}) as other:
        form = asyncio.run(other.render_form())
    assert 'name="gpus" value="1"' in form
    assert 'name="account"' not in form


def test_a_chosen_account_and_qos_are_the_jobs(accounted: AccountedCluster, spawner: Any) -> None:
    accepted = granted(spawner, gpus=1, account="physics", qos="high")
    told = submitted(accounted, spawner._script(accepted, SessionProgram("/usr/bin/python3", {})))
    assert " Account=physics " in told
    assert " QOS=high " in told


def test_what_a_profile_asks_for_is_the_jobs(accounted: AccountedCluster, spawner: Any) -> None:
    spawner.profiles = {"course": {"title": "Course", "gpus": 2, "hours": 1, "account": "teaching"}}
    form = asyncio.run(spawner.render_form())
    assert "<strong>Course</strong>" in form
    (profile,) = spawner._site_policy.profiles
    accepted = granted(spawner, **profile.asked)
    told = submitted(accounted, spawner._script(accepted, SessionProgram("/usr/bin/python3", {})))
    assert " Account=teaching " in told
    assert "gres/gpu=2" in told or "gpu:2" in told
    assert " TimeLimit=01:00:00 " in told


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"account": "medicine"},
            words.not_to_choose("Account", "medicine", "physics", "teaching"),
        ),
        (
            {"account": "teaching", "qos": "high"},
            words.not_to_choose("QOS", "high", "normal"),
        ),
    ],
)
def test_what_slurm_does_not_give_the_user_is_refused(
    spawner: Any, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(OverLimit) as raised:
        granted(spawner, gpus=0, **options)
    assert str(raised.value) == sentence


def test_a_refused_account_ends_the_start_with_these_words(spawner: Any) -> None:
    spawner.user_options = {"gpus": 0, "account": "medicine"}
    with pytest.raises(SpawnException) as raised:
        asyncio.run(spawner.start())
    assert "Account medicine is not open to you" in str(raised.value)
