"""The hub with PostgreSQL in the place of its SQLite file; the server is role postgresql's."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import faults
from tests.instance import SETTINGS, Instance, hub_log
from tests.waiting import until

SOCKET = Path("/run", SETTINGS.parent.name, "postgresql")
URL = f"postgresql:///portal?host={SOCKET}"


@contextmanager
def on_postgresql(portal: Instance, *, standby: bool = False) -> Iterator[None]:
    """Run the hub with an empty PostgreSQL; in the end with its SQLite file again."""
    changes = {'database_url = ""': f'database_url = "{URL}"'}
    if standby:
        changes["standby = false"] = "standby = true"
    with faults.settings(portal, changes):
        until(hub_has_started, seconds=30, what="the hub has started")
        yield
    empty_database(portal)


def sql(text: str, *, database: str = "portal") -> str:
    """Ask the server as its administrator; return what it printed."""
    argv = ["/usr/sbin/runuser", "-u", "postgres", "--", "/usr/bin/psql", "--no-psqlrc", "-qtA"]
    argv += ["--set=ON_ERROR_STOP=1", f"--host={SOCKET}", f"--command={text}", database]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout.strip()


def empty_database(portal: Instance) -> None:
    """Leave nothing in the hub's database."""
    sql("DROP DATABASE portal WITH (FORCE)", database="postgres")
    hub_user = Path(portal.settings["hub"]["state_dir"]).owner()
    sql(f'CREATE DATABASE portal OWNER "{hub_user}"', database="postgres")


def hub_has_started() -> bool:
    """Say whether the hub's start is over; it answers before."""
    return "JupyterHub is now running" in hub_log().rpartition("Running JupyterHub version")[2]
