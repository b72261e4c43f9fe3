"""Expiry of a certificate."""

from datetime import datetime

from dsportal.doctor.finding import Finding, failed, ok, warning

SOON_DAYS = 21


def judge(ends: datetime, now: datetime, renew: str) -> Finding:
    """Say how many days are left of a certificate; ``renew`` says how it gets new ones."""
    days = (ends - now).days
    if days < 0:
        return failed(f"ended on {ends:%Y-%m-%d}", renew)
    words = f"valid for {days} more day{'' if days == 1 else 's'}"
    return warning(words, renew) if days < SOON_DAYS else ok(words)
