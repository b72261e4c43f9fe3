"""The hub with PostgreSQL in the place of its SQLite file: the server is that of role postgresql.

Sessions, starts and logins outlast a restart of the database and an absence of it.
"""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

import httpx
import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.exc import OperationalError

from dsportal.hub import database, postgresql
from dsportal.hub.breaker import TITLE, WORDS
from tests import faults, hub_database
from tests.administrator import portal as command
from tests.hub_database import SOCKET, empty_database, sql
from tests.instance import SETTINGS, USERS, Instance
from tests.visitor import Visitor, execute
from tests.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def hub_on_postgresql(portal: Instance) -> Iterator[Instance]:
    """The portal with an empty PostgreSQL; with its SQLite file again at the end."""
    with hub_database.on_postgresql(portal):
        yield portal


@pytest.fixture(scope="module")
def living(hub_on_postgresql: Instance) -> Iterator[Visitor]:
    """A user with a live session."""
    user = Visitor(hub_on_postgresql, USERS[0])
    user.log_in().raise_for_status()
    user.start_and_wait(gpus=0)
    yield user
    user.leave()
    user.close()


def restart_database() -> None:
    """Restart the server, and wait until it answers."""
    faults.service("restart", "postgresql")
    until(answers, seconds=30, what="the database is back")


def answers() -> bool:
    """Say whether the server answers."""
    with suppress(RuntimeError):
        return sql("SELECT 1") == "1"
    return False


def session_of(user: Visitor) -> list[str]:
    """Return the jobs of the user's session, which must be ready and be known to the hub."""
    server = user.server()
    assert server
    assert server["ready"]
    assert user.session("GET", "/api/status").status_code == 200
    return user.instance.jobs(user=user.name)


def test_the_state_is_in_the_database(living: Visitor) -> None:
    assert living.name in sql("SELECT name FROM users").split()
    assert sql("SELECT count(server_id) FROM spawners") == "1"


def test_only_the_hubs_user_gets_to_the_database(living: Visitor) -> None:
    asks = ["/usr/bin/psql", f"--host={SOCKET}", "portal"]
    done = subprocess.run(
        ["/usr/sbin/runuser", "-u", living.name, "--", *asks],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Permission denied" in done.stderr


def test_a_restart_of_the_database_is_noticed_by_nobody(living: Visitor) -> None:
    jobs = session_of(living)
    restart_database()
    # The first request is the one that meets the connection of before.
    assert living.http.get("/hub/home").status_code == 200
    assert session_of(living) == jobs


def test_a_start_that_waits_outlasts_a_restart_of_the_database(
    hub_on_postgresql: Instance, visit: Callable[[str], Visitor]
) -> None:
    portal = hub_on_postgresql
    waiting = visit(USERS[1])
    with portal.gpus_taken():
        assert waiting.start(gpus=1).status_code == 202
        job_ids = until(
            lambda: portal.jobs(user=waiting.name), seconds=20, what="the start is in the queue"
        )
        restart_database()
    waiting.wait_until_ready()
    assert session_of(waiting) == job_ids


def test_while_the_database_is_away_the_session_goes_on_and_pages_say_so(living: Visitor) -> None:
    jobs = session_of(living)
    kernel_id = living.open_kernel()
    living.run_in(kernel_id, "kept = 42")
    with living.socket(f"/api/kernels/{kernel_id}/channels"):
        faults.service("stop", "postgresql")
        try:
            page = living.http.get("/hub/home")
            assert page.status_code == 503
            assert TITLE in page.text
            assert WORDS in page.text
            answer = living.api("GET", f"/users/{living.name}")
            assert answer.status_code == 503
            assert answer.json()["message"] == WORDS
        finally:
            faults.service("start", "postgresql")
    until(lambda: living.http.get("/hub/home").status_code == 200, seconds=30, what="it is back")
    assert living.name in living.http.get("/hub/home").text
    assert living.run_in(kernel_id, "print(kept)").strip() == "42"
    assert session_of(living) == jobs


def test_a_silent_database_keeps_nobody_waiting(living: Visitor) -> None:
    kernel_id = living.open_kernel()
    living.run_in(kernel_id, "kept = 43")
    with (
        living.socket(f"/api/kernels/{kernel_id}/channels") as socket,
        httpx.Client(base_url=living.instance.url, cookies=living.http.cookies, timeout=5) as http,
    ):
        with faults.frozen_with_children("postgresql"):
            for path in ("/hub/home", "/hub/login", f"/hub/api/users/{living.name}") * 3:
                answer = http.get(path)
                assert answer.status_code == 503, path
                assert WORDS in answer.text
            # What needs no database is answered as ever.
            assert http.get("/hub/static/css/style.min.css").status_code == 200
            assert execute(socket, "print(kept)", 30).strip() == "43"
        until(lambda: http.get("/hub/home").status_code == 200, seconds=30, what="the hub goes on")
    assert session_of(living)


def test_a_start_that_waits_outlasts_a_silent_database(
    hub_on_postgresql: Instance, visit: Callable[[str], Visitor]
) -> None:
    portal = hub_on_postgresql
    waiting = visit(USERS[1])
    with ExitStack() as taken:
        taken.enter_context(portal.gpus_taken())
        assert waiting.start(gpus=1).status_code == 202
        job_ids = until(
            lambda: portal.jobs(user=waiting.name), seconds=20, what="the start is in the queue"
        )
        with faults.frozen_with_children("postgresql"):
            until(lambda: is_refused(waiting), seconds=20, what="the hub has noticed")
            taken.close()
            until(
                lambda: portal.job(job_ids[0])["JobState"] == "RUNNING",
                seconds=30,
                what="the job has started",
            )
    waiting.wait_until_ready()
    assert session_of(waiting) == job_ids


def test_a_stop_outlasts_a_silent_database(
    hub_on_postgresql: Instance, visit: Callable[[str], Visitor]
) -> None:
    portal = hub_on_postgresql
    leaving = visit(USERS[1])
    job_id = leaving.start_and_wait(gpus=0)
    with ExitStack() as frozen:
        frozen.enter_context(faults.frozen("slurmctld"))
        leaving.api("DELETE", f"/users/{leaving.name}/server")
        with faults.frozen_with_children("postgresql"):
            until(lambda: is_refused(leaving), seconds=20, what="the hub has noticed")
            frozen.close()
            until(
                lambda: job_id not in portal.jobs(user=leaving.name),
                seconds=90,
                what="the job is cancelled",
            )
    until(lambda: has_no_server(leaving), seconds=60, what="the hub knows that it is gone")
    leaving.start_and_wait(gpus=0)


def is_refused(user: Visitor) -> bool:
    """Say whether the hub says that its database is away."""
    return user.http.get("/hub/home").status_code == 503


def has_no_server(user: Visitor) -> bool:
    """Say whether the hub answers, and has no server of this user's."""
    answer = user.api("GET", f"/users/{user.name}")
    return answer.status_code == 200 and not answer.json()["servers"]


def test_a_hub_that_starts_without_its_database_waits_for_it(living: Visitor) -> None:
    jobs = session_of(living)
    faults.service("stop", "postgresql")
    faults.kill("hub")
    faults.service("start", "postgresql")
    faults.wait_for_hub(living.instance)
    assert session_of(living) == jobs


def test_a_database_of_an_older_release_is_brought_up_to_date(living: Visitor) -> None:
    jobs = session_of(living)
    newest = sql("SELECT version_num FROM alembic_version")
    faults.service("stop", "hub")
    sql("ALTER TABLE spawners DROP COLUMN display_name")
    sql("UPDATE alembic_version SET version_num = 'ff1860e38070'")
    faults.service("start", "hub")
    faults.wait_for_hub(living.instance)
    assert sql("SELECT version_num FROM alembic_version") == newest
    assert session_of(living) == jobs


def test_a_backup_brings_the_database_back(living: Visitor, tmp_path: Path) -> None:
    jobs = session_of(living)
    file = str(tmp_path / "portal.tar.gz")
    taken = command(living.instance, "backup", file)
    assert taken.returncode == 0, taken.stderr
    faults.service("stop", "hub")
    faults.service("stop", "slurmctld")
    empty_database(living.instance)
    before = set(Path("/etc").glob("*.replaced-*"))
    done = command(living.instance, "restore", file, "--replace")
    assert done.returncode == 0, done.stderr
    faults.service("start", "slurmctld")
    faults.service("start", "hub")
    faults.wait_for_nodes(living.instance)
    faults.wait_for_hub(living.instance)
    assert session_of(living) == jobs
    # Other instances of this machine may have some of their own.
    aside = set(Path("/etc").glob("*.replaced-*")) - before
    assert SETTINGS.parent.name in {folder.name.partition(".")[0] for folder in aside}
    for folder in aside:
        shutil.rmtree(folder)


@pytest.fixture
def with_password(tmp_path: Path) -> Iterator[str]:
    """A server of a site's, which asks for a password; its address."""
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    shutil.chown(folder, "postgres", "postgres")
    programs = max(Path("/usr/lib/postgresql").iterdir()) / "bin"
    secret = tmp_path / "password"
    secret.write_text("se:cret")
    argv = [f"{programs}/initdb", f"--pgdata={folder}/data", "--auth=scram-sha-256", "--no-sync"]
    with secret.open() as words:
        made = as_postgres([*argv, "--pwfile=/dev/stdin"], stdin=words)
        assert made.wait(60) == 0
    argv = [f"{programs}/postgres", "-D", f"{folder}/data", "-k", str(folder)]
    server = as_postgres([*argv, "-c", "listen_addresses="])
    ready = [f"{programs}/pg_isready", "--quiet", f"--host={folder}"]
    until(lambda: as_postgres(ready).wait(10) == 0, seconds=30, what="the server answers")
    yield f"postgresql://postgres@/postgres?host={folder}"
    server.send_signal(signal.SIGINT)
    server.wait(30)
    shutil.rmtree(folder)


def as_postgres(argv: list[str], stdin: IO[str] | None = None) -> "subprocess.Popen[bytes]":
    """Start one of PostgreSQL's programs, which do not run as root."""
    return subprocess.Popen(
        argv,
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        user="postgres",
        group="postgres",
        extra_groups=[],
    )


def test_a_password_comes_from_the_file(with_password: str, tmp_path: Path) -> None:
    file = tmp_path / "pgpass"
    file.touch(mode=0o600)
    url = database.libpq_url(with_password, str(file))
    engine = create_engine(
        database.postgresql_url(with_password, str(file)),
        **postgresql.options(url, lambda: None),
    )
    file.write_text("*:*:*:postgres:wrong\n")
    with pytest.raises(OperationalError, match="password authentication failed"):
        engine.connect()
    file.write_text("*:*:*:postgres:se\\:cret\n")
    with engine.connect() as connection:
        assert connection.scalar(select(1)) == 1
    engine.dispose()
