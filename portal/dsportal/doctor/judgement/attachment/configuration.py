"""The settings of a site's Slurm: slurm.conf(5) and cgroup.conf(5) describe each."""

import re
from collections.abc import Sequence

from dsportal.doctor.finding import Finding, failed, ok, warning
from dsportal.doctor.judgement.attachment.settings import SlurmConfig

OLDEST, NEWEST = (22, 5), (25, 5)
# Of LaunchParameters: what changes nothing of a session. A session is a batch job, whose program
# is no step of srun's.
_HARMLESS = {
    "batch_step_set_cpu_freq",
    "cray_net_exclusive",
    "enable_nss_slurm",
    "lustre_no_flush",
    "mem_sort",
    "mpir_use_nodeaddr",
    "slurmstepd_memlock",
    "slurmstepd_memlock_all",
    "test_exec",
    "ulimit_pam_adopt",
    "use_interactive_step",
}
# Of AccountingStoreFlags: what the accounting then keeps of a session.
_STORED = {
    "job_comment": "its comment (the hub's mark and a random name)",
    "job_env": "the launcher's few variables",
    "job_script": "its script",
}


def version(settings: SlurmConfig) -> Finding:
    """Say whether the portal knows this release."""
    said = settings.value("SLURM_VERSION")
    found = re.match(r"(\d+)\.(\d+)", said)
    if not found:
        return failed("Slurm does not tell its version", "look at `scontrol show config`")
    release = (int(found[1]), int(found[2]))
    if release < OLDEST:
        return failed(f"{said} is too old", "update Slurm to 22.05 or later")
    if release > NEWEST:
        step = "try a session first: the portal was written for 22.05 to 25.05"
        return warning(f"{said} is newer than what is known", step)
    return ok(said)


def private_data(settings: SlurmConfig, operator: str) -> Finding:
    """Say whether the hub sees its sessions' jobs, and what its form shows."""
    hidden = settings.words("PrivateData")
    if "jobs" in hidden and not operator:
        return failed(
            "PrivateData=jobs hides sessions from the hub, which has no operator",
            "set portal_slurm_operator to your SlurmUser",
        )
    if needed := [word for word in ("nodes", "partitions") if word in hidden]:
        return warning(
            f"PrivateData={','.join(needed)} hides from the hub's account what the form offers",
            "take that out of PrivateData, or make the account an operator in Slurm's accounting: "
            "`sacctmgr modify user NAME set adminlevel=operator`",
        )
    if "jobs" in hidden:
        return ok(f"PrivateData=jobs: the hub looks at its sessions' jobs as {operator}")
    return ok("the hub sees all jobs")


def operator(settings: SlurmConfig, operator: str) -> Finding:
    """Say whether sessions can be extended."""
    user = settings.value("SlurmUser").partition("(")[0]
    if not operator:
        return warning(
            "sessions are not extended", f"set portal_slurm_operator: {user}, if they should be"
        )
    if operator == user:
        return ok(f"{operator} is SlurmUser")
    return warning(
        f"{operator} is not SlurmUser ({user})",
        f"`sacctmgr modify user {operator} set adminlevel=operator`, "
        f"or set portal_slurm_operator: {user}",
    )


def plugins(settings: SlurmConfig) -> Finding:
    """Say who may change a job before it is accepted."""
    found = settings.words("JobSubmitPlugins") + settings.words("CliFilterPlugins")
    if not found:
        return ok("none changes what is submitted")
    return warning(
        f"{', '.join(found)} may change or refuse what the portal submits",
        "see that they let a batch job with --gres, --time, --mem and --comment pass unchanged",
    )


def select(settings: SlurmConfig, exclusive: Sequence[str]) -> Finding:
    """Say whether sessions share a node; ``exclusive``: partitions in which users do not."""
    kind = settings.value("SelectType")
    if kind not in ("select/cons_tres", "select/cons_res"):
        return warning(
            f"SelectType={kind or 'unknown'}: each session takes a whole node",
            "offer the portal a partition for whole nodes, or set select/cons_tres",
        )
    if exclusive:
        return warning(
            f"{', '.join(exclusive)}: users do not share a node there (OverSubscribe=EXCLUSIVE "
            "or ExclusiveUser=YES)",
            "leave such a partition out of limits.NAME.partitions, if sessions are to share nodes",
        )
    return ok(f"{kind}: several sessions share a node")


def memory(settings: SlurmConfig, unlimited: Sequence[str]) -> Finding:
    """Say whether memory is given out; ``unlimited``: partitions without a default of their own."""
    if "memory" not in settings.value("SelectTypeParameters").lower():
        return warning(
            "memory is not a consumable resource: sessions on one node can take each other's",
            "set SelectTypeParameters=CR_Core_Memory, if nodes are shared",
        )
    for name in ("DefMemPerCPU", "DefMemPerNode", "DefMemPerGPU"):
        if settings.value(name):
            return ok(f"{name} is {settings.value(name)} MB")
    if not unlimited:
        return ok("each partition has a DefMemPerCPU or DefMemPerNode")
    return warning(
        f"a job that asks for no memory takes all of its node's in {', '.join(unlimited)} "
        "(DefMemPerCPU is not set)",
        "set DefMemPerCPU: users submit such jobs from their sessions",
    )


def confinement(settings: SlurmConfig) -> Finding:
    """Say whether a session is kept to what it asked for."""
    lacking = []
    if settings.value("ProctrackType") != "proctrack/cgroup":
        lacking.append(f"ProctrackType={settings.value('ProctrackType')}")
    if "task/cgroup" not in settings.words("TaskPlugin"):
        lacking.append(f"TaskPlugin={settings.value('TaskPlugin') or 'task/none'}")
    lacking += [
        f"{name}=no"
        for name in ("ConstrainDevices", "ConstrainRAMSpace")
        if settings.value(name).lower() == "no"
    ]
    if not lacking:
        return ok("sessions are kept to their GPUs and memory")
    return warning(
        f"sessions are not kept to what they asked for ({', '.join(lacking)})",
        "set proctrack/cgroup, task/cgroup, ConstrainDevices and ConstrainRAMSpace",
    )


def stored(settings: SlurmConfig) -> Finding:
    """Say what the accounting keeps of a session, and that it is no secret."""
    flags = settings.words("AccountingStoreFlags")
    if kept := [words for flag, words in _STORED.items() if flag in flags]:
        return ok(f"kept of each session: {', '.join(kept)}; none of it is secret")
    return ok("neither scripts nor environments of sessions are kept")


def launch(settings: SlurmConfig) -> Finding:
    """Say whether jobs start in a way that the portal does not know."""
    given = settings.words("LaunchParameters")
    if "disable_send_gids" in given and "enable_nss_slurm" not in given:
        return warning(
            "disable_send_gids: a session has the groups that its node knows of its user",
            "compare `id NAME` on the nodes and on this machine",
        )
    if unknown := [word for word in given if word not in _HARMLESS | {"disable_send_gids"}]:
        return warning(
            f"LaunchParameters={','.join(unknown)} is not known here", "try a session first"
        )
    return ok(f"{', '.join(given)}: nothing that changes a session" if given else "as usual")
