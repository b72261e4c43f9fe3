"""File modes: who may read a file."""

from dsportal.doctor.finding import Finding, failed, ok


def judge(path: str, mode: int, owner: str, expected_owner: str) -> Finding:
    """Say whether a file is its owner's alone."""
    bits = mode & 0o7777
    if owner != expected_owner:
        return failed(f"belongs to {owner}", f"chown {expected_owner} {path}")
    if bits & 0o077:
        return failed(
            f"mode {bits:04o}: others may read it",
            f"chmod 0600 {path}, and make a new secret: the old one may be known",
        )
    return ok(f"mode {bits:04o}, of {owner}")
