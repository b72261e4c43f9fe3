"""Output of Slurm's own programs: scontrol, sinfo, and what they refuse."""

import re

from dsportal.doctor.finding import Finding, failed, ok, warning

# "Rewound credential", "Expired credential": munge, on the other side, about this side's clock.
_CLOCK = re.compile(r"(rewound|expired) credential", re.IGNORECASE)
# Words of a node's state (sinfo(1), "NODE STATE CODES"); a star is of one that does not answer.
# A node that is PLANNED is well: backfill keeps it for a job that waits.
_TAKES_JOBS = {"IDLE", "MIXED", "ALLOCATED", "COMPLETING"}
_IS_ILL = re.compile(r"\*|\b(FAIL\w*|INVAL\w*|NOT_RESPONDING)\b")
_IS_KEPT_FREE = re.compile(r"\b(BLOCKED|DRAIN\w*|MAINT\w*|POWERING_DOWN|REBOOT\w*|RESERVED)\b")


def judge_ping(said: str) -> Finding:
    """Read ``scontrol ping``: "Slurmctld(primary) at head is UP", a line for each controller."""
    lines = [line.strip() for line in said.splitlines() if line.startswith("Slurmctld")]
    if lines and all(line.endswith(" UP") for line in lines):
        return ok("answers")
    step = "start slurmctld on the controller, and read its log"
    return failed("; ".join(lines) or "scontrol ping says nothing", step)


def judge_refusal(words: str) -> Finding:
    """Say what a question to the controller failed with."""
    if _CLOCK.search(words):
        return failed(words, "this host's clock and the controller's differ: set them right")
    if "munge" in words.lower() or "credential" in words.lower():
        return failed(words, "start munged, and compare munge.key with the controller's")
    return failed(words, "start slurmctld on the controller, and read its log")


def judge_settings(config: str) -> Finding:
    """Read ``scontrol show config``, in which Slurm compares its settings here and there.

    "HASH_VAL = Match", or "HASH_VAL = Different Ours=0x1 Slurmctld=0x2".
    """
    found = re.search(r"^HASH_VAL\s*=\s*(.+)$", config, re.MULTILINE)
    if not found:
        return warning("Slurm does not say whether they are the same", "compare slurm.conf")
    if found[1].strip() == "Match":
        return ok("the same as the controller's")
    return failed(
        f"not the controller's ({found[1].strip()})",
        "deploy again, or, if you run Slurm yourself, use one slurm.conf on all hosts; "
        "then `scontrol reconfigure`",
    )


def judge_node(node: str) -> Finding:
    """Read a line of ``scontrol show node NODE --oneliner``.

    "NodeName=n1 ... State=IDLE+DRAIN ThreadsPerCore=1 ... Reason=disk full [root@...]".
    """
    found = re.search(r"\bState=(\S+)", node)
    if not found:
        return failed("Slurm tells no state", "look at `scontrol show node`")
    reason = re.search(r"\bReason=(.*?)(?: \[\S+@\S+\])?\s*$", node)
    why = f" ({reason[1]})" if reason else ""
    words = f"{found[1].lower()}{why}"
    if _IS_KEPT_FREE.search(found[1]):
        step = "`scontrol update nodename=NODE state=resume` once the reason is gone"
        return warning(f"takes no new jobs: {words}", step)
    state = found[1].partition("+")[0].rstrip("~#%$@^!-")
    if state not in _TAKES_JOBS or _IS_ILL.search(found[1]):
        return failed(words, "start slurmd on the node and read its log, then resume the node")
    return ok(words)
