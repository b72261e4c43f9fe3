"""Make Slurm's accounting know what it should: one argument, JSON with cluster, accounts, qos.

An account's users are the members of the Unix group of its name, as this machine knows them. What
is there already is left as it is, but for the limits that are named. Prints what it changed.
"""

import grp
import json
import pwd
import subprocess
import sys
import time
from typing import Any

Named = dict[str, Any]
START_SECONDS = 60


def sacctmgr(*argv: str) -> str:
    """Run Slurm's program for accounts."""
    done = subprocess.run(
        ["/usr/bin/sacctmgr", "--immediate", "--noheader", "--parsable2", *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # It says so where a change leaves everything as it is.
    if done.returncode != 0 and "Nothing new added" not in done.stdout + done.stderr:
        sys.exit(f"sacctmgr {' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def change(*argv: str) -> None:
    """Do it, and tell Ansible."""
    sacctmgr(*argv)
    print("sacctmgr", *argv, flush=True)


def wait_for_accounting() -> None:
    """Wait until slurmdbd answers; it may have been started just now."""
    deadline = time.monotonic() + START_SECONDS
    asks = ["/usr/bin/sacctmgr", "--noheader", "list", "cluster"]
    while subprocess.run(asks, capture_output=True, timeout=60, check=False).returncode != 0:
        if time.monotonic() > deadline:
            sys.exit(f"slurmdbd was started and does not answer within {START_SECONDS} s")
        time.sleep(0.5)


def names(kind: str) -> list[str]:
    """Return what the accounting has of a kind."""
    return sacctmgr("list", kind, f"format={'name' if kind == 'qos' else kind}").split()


def ensure(kind: str, one: Named) -> None:
    """Make an account or a qos, and set the limits that are named."""
    limits = [f"{key}={value}" for key, value in (one.get("limits") or {}).items()]
    if one["name"] not in names(kind):
        change("add", kind, one["name"], *limits)
    elif limits and not has(kind, one):
        change("modify", kind, one["name"], "set", *limits)


def has(kind: str, one: Named) -> bool:
    """Say whether the limits are those that are wanted."""
    wanted = {key: str(value) for key, value in one["limits"].items()}
    table = "qos" if kind == "qos" else "associations"
    which = [f"{kind}={one['name']}"] if kind == "account" else [f"names={one['name']}"]
    # An account's own limits are in the row without a user.
    argv = ["list", table, *which, f"format={','.join(wanted)}"]
    rows = sacctmgr(*argv, *(["users="] if kind == "account" else [])).splitlines()
    return bool(rows) and rows[0].split("|") == list(wanted.values())


def members(group: str) -> set[str]:
    """Return who is in a Unix group, by its list or by their own number."""
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        return set()
    return {*entry.gr_mem, *(one.pw_name for one in pwd.getpwall() if one.pw_gid == entry.gr_gid)}


def main() -> None:
    """Register the cluster, then what belongs to it."""
    wanted = json.loads(sys.argv[1])
    wait_for_accounting()
    if wanted["cluster"] not in sacctmgr("list", "cluster", "format=cluster").split():
        change("add", "cluster", wanted["cluster"])
    for qos in wanted["qos"]:
        ensure("qos", qos)
    for account in wanted["accounts"]:
        name = account["name"]
        ensure("account", account)
        known = sacctmgr("list", "associations", f"account={name}", "format=user").split()
        if new := sorted(members(name) - set(known)):
            change("add", "user", ",".join(new), f"account={name}")


main()
