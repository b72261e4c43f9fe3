"""What a portal needs of a Slurm that the site runs itself, read from what Slurm says of itself.

slurm.conf(5) describes each setting; the forms are those of ``scontrol show config`` of 22.05.
"""

import re

from dsportal.doctor.finding import Finding, Line, failed, ok, warning

OLDEST, NEWEST = (22, 5), (25, 5)
# gpu:4 | gpu:a100:4(S:0-1) | gpu:a100_1g.5gb:7 | gpu:a100:no_consume:4
_GPUS = re.compile(
    r"(?:^|,)gpu(?::([^:(),\s]+))??(?::no_consume)?:\d+(?=[(,]|$)", re.ASCII | re.MULTILINE
)
_SETTING = re.compile(r"^(\w+)(?:\[\d+\])?\s*=[^\S\n]*(.*?)[^\S\n]*$", re.MULTILINE)
_NOTHING = {"", "(null)", "none", "unlimited", "n/a"}


def judge(config: str, gres: str, *, operator: str) -> list[Line]:
    """Read ``scontrol show config``, and the nodes' GRES as ``sinfo --format=%G`` lists them.

    ``operator``: as whom the launcher may ask and extend, or nobody.
    """
    settings = _Settings(config)
    judged = {
        "Slurm's version": _version(settings),
        "hidden jobs": _private_data(settings, operator),
        "operator": _operator(settings, operator),
        "accounts": _accounts(settings),
        "changed jobs": _plugins(settings),
        "shared nodes": _select(settings),
        "memory": _memory(settings),
        "confinement": _confinement(settings),
        "GPUs": _gpus(gres),
        "federation": _federation(settings),
    }
    return [Line(check, finding) for check, finding in judged.items()]


class _Settings:
    """Slurm's settings by their names, in lower case: releases write them differently."""

    def __init__(self, config: str) -> None:
        self._values = {name.lower(): value for name, value in _SETTING.findall(config)}

    def value(self, name: str) -> str:
        """Give what is set, "" for nothing."""
        value = self._values.get(name.lower(), "")
        return "" if value.lower() in _NOTHING else value

    def words(self, name: str) -> list[str]:
        """Give the parts of a list."""
        return [word.strip().lower() for word in self.value(name).split(",") if word.strip()]


def _version(settings: _Settings) -> Finding:
    said = settings.value("SLURM_VERSION")
    found = re.match(r"(\d+)\.(\d+)", said)
    if not found:
        return failed("Slurm does not tell its version", "look at `scontrol show config`")
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        return failed(f"{said} is too old", "update Slurm to 22.05 or later")
    if version > NEWEST:
        step = "try a session first: the portal was written for 22.05 to 25.05"
        return warning(f"{said} is newer than what is known", step)
    return ok(said)


def _private_data(settings: _Settings, operator: str) -> Finding:
    if "jobs" not in settings.words("PrivateData"):
        return ok("the hub sees all jobs")
    if operator:
        return ok(f"PrivateData=jobs: the hub looks at its sessions' jobs as {operator}")
    return failed(
        "PrivateData=jobs hides sessions from the hub, which has no operator",
        "set portal_slurm_operator to your SlurmUser",
    )


def _operator(settings: _Settings, operator: str) -> Finding:
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


def _accounts(settings: _Settings) -> Finding:
    enforced = settings.words("AccountingStorageEnforce")
    # limits and qos imply associations; "all" stands for them, too.
    if not {"associations", "limits", "qos", "safe", "all"} & set(enforced):
        return ok("no job needs an account")
    words = f"AccountingStorageEnforce={','.join(enforced)}"
    return warning(
        f"{words}: a job needs an account, and may need a QOS",
        "see that everybody has a default account in `sacctmgr show associations`, or set account "
        "and qos below limits of portal_settings",
    )


def _plugins(settings: _Settings) -> Finding:
    plugins = settings.words("JobSubmitPlugins")
    filters = settings.words("CliFilterPlugins")
    if not plugins and not filters:
        return ok("none changes what is submitted")
    return warning(
        f"{', '.join(plugins + filters)} may change or refuse what the portal submits",
        "see that they let a batch job with --gres, --time, --mem and --comment pass unchanged",
    )


def _select(settings: _Settings) -> Finding:
    kind = settings.value("SelectType")
    if kind in ("select/cons_tres", "select/cons_res"):
        return ok(f"{kind}: several sessions share a node")
    return warning(
        f"SelectType={kind or 'unknown'}: each session takes a whole node",
        "offer the portal a partition for whole nodes, or set select/cons_tres",
    )


def _memory(settings: _Settings) -> Finding:
    if "memory" not in settings.value("SelectTypeParameters").lower():
        return warning(
            "memory is not given out: sessions on one node may take each other's",
            "set SelectTypeParameters=CR_Core_Memory, if nodes are shared",
        )
    for name in ("DefMemPerCPU", "DefMemPerNode", "DefMemPerGPU"):
        if settings.value(name):
            return ok(f"{name} is {settings.value(name)} MB")
    return warning(
        "a job that asks for no memory takes all of its node's (DefMemPerCPU is not set)",
        "set DefMemPerCPU: users submit such jobs from their sessions",
    )


def _confinement(settings: _Settings) -> Finding:
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


def _gpus(gres: str) -> Finding:
    found = _GPUS.findall(gres)
    if not found:
        return warning("no node has GPUs in its Gres", "the form offers none; see gres.conf(5)")
    types = sorted(set(found) - {""})
    if not types:
        return ok("of one kind")
    if "" in found:
        return warning(
            f"some have a type ({', '.join(types)}), some have none", "give all of them a type"
        )
    return ok(f"of type {', '.join(types)}")


def _federation(settings: _Settings) -> Finding:
    if not settings.value("FederationParameters"):
        return ok("one cluster")
    return warning(
        f"FederationParameters={settings.value('FederationParameters')}: jobs may go elsewhere",
        "keep the partitions that the portal offers out of the federation",
    )
