"""How long a login takes while the first of two directory servers is down, in each way to be down.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.login_failover [--logins 20]

Two real slapd hold the same people. The first is asked first, and: answers; refuses connections;
is stopped (SIGSTOP: it accepts and says nothing), unencrypted and with TLS; accepts nothing, as a
host that is switched off. *First* logins meet that unprepared: for each the authenticator is new,
with the settings' defaults. *Next* ones follow one that made the server be asked last.

The last line is one JSON object: median and longest seconds of each.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication.ldap import DirectoryAuthenticator

# isort: split
from benchmarks.commit import circumstances, commit
from tests.integration.authentication import slapd
from tests.integration.authentication.slapd import PASSWORD, Slapd
from tests.network.sockets import free_port


def authenticator(servers: list[str], ca_file: str) -> DirectoryAuthenticator:
    """Make one with the default time limits."""
    return DirectoryAuthenticator(
        servers=servers,
        ca_file=ca_file,
        tls_strategy="insecure",
        user_search_base=slapd.USER_BASE,
        group_search_base=slapd.GROUP_BASE,
        allowed_groups={"data-scientists"},
    )


def seconds(used: DirectoryAuthenticator) -> float:
    """Log in; return how long it took."""
    data = {"username": "user1", "password": PASSWORD}
    start = time.perf_counter()
    user = asyncio.run(used.authenticate(None, data))
    took = time.perf_counter() - start
    if user is None:
        raise RuntimeError("the login was refused")
    return took


def measured(servers: list[str], ca_file: str, logins: int) -> dict[str, float]:
    """Log in on new authenticators, each twice."""
    first, following = [], []
    for _ in range(logins):
        used = authenticator(servers, ca_file)
        first.append(seconds(used))
        following.append(seconds(used))
    return {
        "first_median": round(statistics.median(first), 3),
        "first_max": round(max(first), 3),
        "next_median": round(statistics.median(following), 3),
        "next_max": round(max(following), 3),
    }


@contextlib.contextmanager
def directories() -> Iterator[tuple[Slapd, Slapd]]:
    """Run two."""
    with contextlib.ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        first, second = (stack.enter_context(slapd.running(folder)) for folder in folders)
        yield first, second


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--logins", type=int, default=20, help="of each kind")
    logins = parser.parse_args().logins
    logging.disable(logging.CRITICAL)
    found = {}
    with directories() as (first, second), slapd.full_queue() as silent:
        both = [first.url, second.url]
        found["answers"] = measured(both, "", logins)
        found["refuses"] = measured([f"ldap://127.0.0.1:{free_port()}", second.url], "", logins)
        found["accepts_nothing"] = measured([silent, second.url], "", logins)
        with first.silent():
            found["silent"] = measured(both, "", logins)
            found["silent_tls"] = measured([first.tls_url, second.url], first.ca_file, logins)
    result = {
        "benchmark": "login_failover",
        "seconds": found,
        "logins": logins,
        **circumstances(commit()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
