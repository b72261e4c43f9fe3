"""Service managers, supervisor and systemd: whether our services run."""

from collections.abc import Mapping

from dsportal.doctor.finding import Finding, failed, ok


def judge_supervisor(status: str) -> Finding:
    """Read ``supervisorctl status``: "hub   RUNNING   pid 12, uptime 0:01:02"."""
    states = {words[0]: words[1] for line in status.splitlines() if len(words := line.split()) > 1}
    down = [name for name, state in states.items() if state != "RUNNING"]
    return _judged(down, len(states), "supervisorctl start NAME, and read its log")


def judge_systemd(units: str, unit_files: str) -> Finding:
    """Read ``systemctl list-units`` and ``list-unit-files``.

    "portal-hub.service loaded active running The hub", "portal-hub.service enabled enabled". A unit
    that is not enabled and not active is one that a timer starts; one that was is active, though it
    may have ended (a firewall's rules).
    """
    enabled = {words[0]: words[1] for line in unit_files.splitlines() if (words := line.split())}
    states = {words[0]: words[2] for line in units.splitlines() if len(words := line.split()) > 2}
    down = [name for name, state in states.items() if _is_down(name, state, enabled)]
    return _judged(down, len(states), "systemctl start NAME, and read `journalctl -u NAME`")


def _is_down(name: str, state: str, enabled: Mapping[str, str]) -> bool:
    if state == "inactive":
        return enabled.get(name) == "enabled"
    return state != "active"


def _judged(down: list[str], count: int, how: str) -> Finding:
    if not count:
        return failed("there are none", "deploy this host again")
    if down:
        return failed(f"{', '.join(down)} of {count} do not run", how)
    return ok(f"all {count} run")
