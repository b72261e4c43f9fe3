"""Clock synchronisation of a host: the kernel's own word, and a comparison with the hub."""

from dsportal.doctor.finding import Finding, failed, ok, warning

STA_UNSYNC = 0x40
"""adjtimex(2): nothing keeps the clock right."""
# Munge refuses what is older than 300 s; certificates and logins are less forgiving.
_NOTICED_SECONDS, _HARMFUL_SECONDS = 2.0, 60.0


def judge_kernel(status: int, error_seconds: float) -> Finding:
    """Say whether something keeps the kernel's clock right."""
    if status & STA_UNSYNC:
        return warning("not synchronised", "start chrony or systemd-timesyncd")
    return ok(f"synchronised, within {error_seconds:.2g} s according to the kernel")


def judge_against_hub(ahead_seconds: float) -> Finding:
    """Say whether this clock and the hub's agree; HTTP tells whole seconds only."""
    words = f"{abs(ahead_seconds):.0f} s {'ahead of' if ahead_seconds > 0 else 'behind'} the hub's"
    step = "let the same time servers keep both clocks (chronyc tracking, timedatectl)"
    if abs(ahead_seconds) > _HARMFUL_SECONDS:
        return failed(words, step)
    if abs(ahead_seconds) > _NOTICED_SECONDS:
        return warning(words, step)
    return ok("agrees with the hub's")
