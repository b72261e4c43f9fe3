"""What is rendered for hostile input, read by the real sbatch."""

import re
import subprocess
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyterhub_gpu_slurm.errors import Refusal
from jupyterhub_gpu_slurm.options.allowance import Allowance
from jupyterhub_gpu_slurm.options.policy import Defaults, Limits, PartitionLimit, accept
from jupyterhub_gpu_slurm.options.request import parse
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.session.script import SessionProgram, job_name, render
from tests.hostile.inputs import ENVIRONMENTS, OPTIONS, TEXTS
from tests.instance import LIMITED, Instance

LIMITS = Limits(
    tuple(PartitionLimit(name, 4, timedelta(hours=12)) for name in ("sxm2", "shareq")),
    Allowance(account="limited", qos="small"),
)
SOUND = st.fixed_dictionaries(
    {
        "gpus": st.integers(0, 4),
        "hours": st.floats(0.01, 12, allow_nan=False),
        "partition": st.sampled_from(("sxm2", "shareq")),
    }
)


@given(SOUND | OPTIONS, TEXTS, TEXTS, ENVIRONMENTS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_sbatch_reads_what_was_accepted_and_nothing_else(
    portal: Instance,
    options: object,
    username: str,
    server_name: str,
    environment: dict[str, str],
) -> None:
    try:
        accepted = accept(parse(options), LIMITS, ResourceShape(), Defaults())
    except Refusal:
        return
    name = job_name(portal.mark, username, server_name)
    program = SessionProgram("/usr/bin/python3", {"environment": environment})
    script = render(name, accepted, program)
    done = subprocess.run(
        ["/usr/sbin/runuser", "-u", LIMITED, "--", "sbatch", "--test-only", "--verbose"],
        input=script,
        capture_output=True,
        text=True,
        env=portal.slurm_environment,
        cwd="/",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # "sbatch: job-name            : portal-ada", Slurm 22.05.
    found = dict(re.findall(r"^sbatch: ([a-z-]+) +: (.*)$", done.stderr, re.MULTILINE))
    gpus = {"gres": f"gres:gpu:{accepted.resources.gpus}"} if accepted.resources.gpus else {}
    meant = gpus | {
        "account": "limited",
        "cpus-per-task": f"{accepted.resources.cores}",
        "job-name": name,
        "no-requeue": "no-requeue",
        "nodes": "1",
        "ntasks": "1",
        "partition": accepted.partition,
        "qos": "small",
        "test-only": "set",
        "verbose": "1",
    }
    # Slurm writes these two in units of its own.
    assert {"mem", "time"} <= found.keys()
    assert {key: value for key, value in found.items() if key not in ("mem", "time")} == meant
