"""The host names of users: one below the portal's for each."""

from collections.abc import Set
from dataclasses import dataclass

from dsportal.doctor.finding import Finding, failed, ok

HOW = "docs/how-to/use-https.md"


@dataclass(frozen=True)
class Seen:
    """DNS and TLS observations of a user's host name."""

    name: str
    """The portal's."""
    addresses: Set[str]
    """The portal's; empty where its name is not known."""
    below: Set[str]
    """Those of a name below it."""
    complaint: str = ""
    """What a browser would say of the certificate that is shown there."""


def missing() -> Finding:
    """Judge a portal with HTTPS that has one host name for all."""
    return failed(
        "all users share one host name, so browsers do not isolate them from each other",
        "have *.NAME beside the portal's NAME in DNS and certificate, and set "
        f"hub.subdomain_host (portal_subdomain_host of the inventory): {HOW}",
    )


def judge(seen: Seen) -> Finding:
    """Say whether browsers reach the users' host names."""
    wildcard = f"*.{seen.name}"
    if not seen.addresses:
        return failed(f"{seen.name} has no address", f"put {seen.name} and {wildcard} into DNS")
    if not seen.below:
        return failed(
            f"names below {seen.name} have no address",
            f"put {wildcard} into DNS, with the address of {seen.name}: no session opens without",
        )
    if not seen.below <= seen.addresses:
        there, here = ", ".join(sorted(seen.below)), ", ".join(sorted(seen.addresses))
        return failed(
            f"{wildcard} is {there}, and {seen.name} is {here}", "give both the same address in DNS"
        )
    if seen.complaint:
        return failed(
            f"the certificate is not for {wildcard}: {seen.complaint}",
            f"have one for {seen.name} and {wildcard}, and deploy it: {HOW}",
        )
    return ok(f"each user has one below {seen.name}")
