"""The cluster page's API: two users at once, an admin, and what each of them gets."""

import csv
import grp
import json
import pwd
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx
import jsonschema

from dsportal.cluster.words import SLURM_SILENT
from tests import faults
from tests.instance import ADMIN, USERS, Instance, trust
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]
ONE, TWO = USERS[:2]
ROOT = "/services/cluster"


def ask(portal: Instance, token: str, path: str) -> httpx.Response:
    headers = {"Authorization": f"token {token}"}
    return httpx.get(f"{portal.url}{ROOT}/{path}", headers=headers, timeout=60, verify=trust())


def answer(portal: Instance, token: str, path: str) -> dict[str, Any]:
    got = ask(portal, token, path)
    assert got.status_code == 200, got.text
    return dict(got.json())


def gpus(portal: Instance, token: str) -> list[dict[str, Any]]:
    nodes = answer(portal, token, "api/v1/cluster")["nodes"]
    return [gpu for node in nodes for gpu in node["gpus"]]


def states(portal: Instance, token: str) -> dict[str, int]:
    found = [gpu["state"] for gpu in gpus(portal, token)]
    return {state: found.count(state) for state in sorted(set(found))}


def group_of(user: str) -> str:
    return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name


@contextmanager
def job_of(portal: Instance, user: str, name: str) -> Iterator[str]:
    """Hold two GPUs with a plain job."""
    argv = ["sbatch", "--parsable", "--gres=gpu:2", "--mem=1G", "--time=10", "--output=/dev/null"]
    job_id = portal.slurm(*argv, f"--job-name={name}", "--wrap=exec sleep 600", user=user).strip()
    try:
        until(lambda: portal.job(job_id)["JobState"] == "RUNNING", seconds=20, what="the job runs")
        yield job_id
    finally:
        portal.cancel(job_id)


def test_each_of_two_users_sees_their_own_and_only_an_admin_sees_names(
    portal: Instance, visit: Visit
) -> None:
    one, two, admin = (visit(name).token() for name in (ONE, TWO, ADMIN))
    # What the other's job is called looks like a line of squeue's.
    forged = f"nobody's\n1|x|1|RUNNING|{ONE}|sxm2"
    with job_of(portal, TWO, forged) as job_id:
        with suppress(AssertionError):
            until(lambda: "mine" in states(portal, two), seconds=30, what="the job is shown")
        assert states(portal, two) == {"free": 10, "mine": 2}
        assert states(portal, one) == {"free": 10, "others": 2}
        assert states(portal, admin) == {"free": 10, "others": 2}
        assert {gpu["user"] for gpu in gpus(portal, one)} == {None}
        assert {(gpu["user"], gpu["job_id"]) for gpu in gpus(portal, admin)} == {
            (None, None),
            (TWO, int(job_id)),
        }
        for token in (one, two, admin):
            (job,) = answer(portal, token, "api/v1/jobs")["jobs"]
            is_shown = token != one
            assert job["id"] == job_id
            assert job["gpus"] == 2
            assert job["is_mine"] is (token == two)
            assert job["user"] == (TWO if is_shown else None)
            assert job["name"] == ("nobody's" if is_shown else None)
            own = answer(portal, token, "api/v1/jobs?own=true")["jobs"]
            assert own == ([job] if token == two else [])


def test_the_answers_are_as_they_are_described(portal: Instance, visit: Visit) -> None:
    admin = visit(ADMIN).token()
    described = answer(portal, admin, "api/openapi.json")
    with job_of(portal, TWO, "one"):
        for path, schema in (
            ("api/v1/cluster", "ClusterAnswer"),
            ("api/v1/jobs", "JobsAnswer"),
            ("api/v1/sessions", "SessionsAnswer"),
        ):
            assert path in "".join(described["paths"])
            whole = {**described, "$ref": f"#/components/schemas/{schema}"}
            jsonschema.validate(answer(portal, admin, path), whole)
    refusal = ask(portal, "no such token", "api/v1/jobs")
    assert refusal.status_code == 403
    jsonschema.validate(refusal.json(), {**described, "$ref": "#/components/schemas/ErrorResponse"})


def test_a_token_that_may_not_look_is_refused(portal: Instance, visit: Visit) -> None:
    user = visit(ONE)
    asked = {"note": "narrow", "scopes": ["read:users:name!user"]}
    narrow = user.api("POST", f"/users/{ONE}/tokens", json=asked).json()["token"]
    for path in ("api/v1/cluster", "api/v1/jobs", "api/v1/events", "api/openapi.json", ""):
        assert ask(portal, narrow, path).status_code in (302, 403)
    for path in ("api/v1/sessions", "api/v1/usage", "api/v1/usage.csv"):
        assert ask(portal, user.token(), path).status_code == 403


def test_a_request_by_cookie_that_another_page_could_send_is_refused(visit: Visit) -> None:
    user = visit(ONE)
    assert user.http.get(f"{ROOT}/").status_code == 200
    elsewhere = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "cross-site"}
    assert user.http.get(f"{ROOT}/api/v1/jobs", headers=elsewhere).status_code == 403
    admin = visit(ADMIN)
    admin.http.get(f"{ROOT}/")
    forged = admin.http.post(f"{ROOT}/stop", data={"session": f"{ONE}/"}, follow_redirects=False)
    assert forged.status_code in (302, 403)
    assert f"{ROOT}/#" not in forged.headers.get("Location", "")


def test_a_session_sees_its_own_and_an_admin_stops_it_by_their_own_right(
    portal: Instance, visit: Visit
) -> None:
    user, admin = visit(ONE), visit(ADMIN)
    job_id = user.start_and_wait(gpus=1)
    token = admin.token()

    def session() -> dict[str, Any]:
        found = answer(portal, token, "api/v1/sessions")["sessions"]
        return next((one for one in found if str(one["job_id"]) == job_id), {})

    until(lambda: session().get("nodes"), seconds=30, what="the admin sees the session's node")
    assert (session()["user"], session()["gpus"]) == (ONE, 1)
    until(lambda: session()["idle_seconds"] is not None, seconds=60, what="the idle time is known")

    # GPU hours, for a page and for a table calculation.
    for by, name in (("user", ONE), ("group", group_of(ONE))):
        path = f"?days=1&by={by}"
        rows = answer(portal, token, f"api/v1/usage{path}")["rows"]
        assert [row["sessions"] >= 1 for row in rows if row[by] == name] == [True]
        (head, *lines) = csv.reader(ask(portal, token, f"api/v1/usage.csv{path}").text.splitlines())
        assert head[0] == by
        assert name in [line[0] for line in lines]

    # From inside, with what the session was given.
    address = portal.settings["cluster"]["url"].replace("http:", "https:")
    inside = (
        "import json, os, ssl, urllib.request as u\n"
        "key, own, hub = (os.environ['JUPYTERHUB_SSL_' + name] "
        "for name in ('KEYFILE', 'CERTFILE', 'CLIENT_CA'))\n"
        "tls = ssl.create_default_context(cafile=hub)\n"
        "tls.load_cert_chain(own, key)\n"
        f"r = u.Request({address!r} + '{ROOT}/api/v1/jobs', "
        "headers={'Authorization': 'token ' + os.environ['JUPYTERHUB_API_TOKEN']})\n"
        "jobs = json.load(u.urlopen(r, context=tls))['jobs']\n"
        "print([(j['id'], j['is_mine'], j['is_session']) for j in jobs])"
    )
    until(
        lambda: f"('{job_id}', True, True)" in user.run(inside),
        seconds=60,
        what="the session sees itself",
    )

    # Nobody but an admin, and not with what only may look.
    path = f"{portal.url}{ROOT}/api/v1/sessions/{ONE}/"
    asked = {"note": "look", "scopes": ["access:services!service=cluster", "read:users:name!user"]}
    looking = admin.api("POST", f"/users/{ADMIN}/tokens", json=asked).json()["token"]
    for weak in (user.token(), visit(TWO).token(), looking):
        refused = httpx.delete(
            path, headers={"Authorization": f"token {weak}"}, timeout=60, verify=trust()
        )
        assert refused.status_code == 403, refused.text
    assert portal.jobs(user=ONE) == [job_id]

    # The page's button, with the login's cookie.
    page = admin.http.get(f"{ROOT}/").text
    (xsrf,) = set(re.findall(r'name="_xsrf" value="([^"]+)"', page))
    stopped = admin.http.post(f"{ROOT}/stop", data={"_xsrf": xsrf, "session": f"{ONE}/"})
    assert stopped.status_code == 200, stopped.text
    until(lambda: not portal.jobs(user=ONE), seconds=60, what="the session's job is gone")


def events(portal: Instance, token: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Follow the stream until it ends."""
    headers = {"Authorization": f"token {token}"}
    url = f"{portal.url}{ROOT}/api/v1/events"
    with httpx.stream("GET", url, headers=headers, timeout=60, verify=trust()) as stream:
        name = ""
        for line in stream.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))


def test_a_change_is_told_and_the_stream_ends_with_the_token(
    portal: Instance, visit: Visit
) -> None:
    user = visit(ONE)
    made = user.api("POST", f"/users/{ONE}/tokens", json={"note": "a stream"}).json()
    stream = events(portal, made["token"])
    first = [next(stream), next(stream)]
    assert [name for name, _ in first] == ["cluster", "jobs"]
    with job_of(portal, ONE, "told") as job_id:
        # Nothing is told twice: what comes is news, or a heartbeat.
        for name, data in stream:
            if name == "jobs" and job_id in [job["id"] for job in data["jobs"]]:
                break
        user.api("DELETE", f"/users/{ONE}/tokens/{made['id']}").raise_for_status()
        *_, (last, _) = stream
    assert last == "end"


def test_one_user_follows_a_bounded_number_of_streams_and_gets_a_place_back_at_once(
    portal: Instance, visit: Visit
) -> None:
    headers = {"Authorization": f"token {visit(ONE).token()}"}
    url = f"{portal.url}{ROOT}/api/v1/events"
    # A stream whose lines are not kept is closed.
    followed = []
    with ExitStack() as leaving:
        for _ in range(20):
            stream = leaving.enter_context(
                httpx.stream("GET", url, headers=headers, timeout=60, verify=trust())
            )
            assert stream.status_code == 200
            followed.append(stream.iter_lines())
            next(followed[-1])
        with httpx.stream("GET", url, headers=headers, timeout=60, verify=trust()) as refused:
            assert refused.status_code == 429

    def may_follow() -> bool:
        with httpx.stream("GET", url, headers=headers, timeout=60, verify=trust()) as stream:
            return stream.status_code == 200

    until(may_follow, seconds=5, what="those who left have given their places back")


def test_the_last_picture_stays_while_slurm_does_not_answer(portal: Instance, visit: Visit) -> None:
    token = visit(ONE).token()
    before = answer(portal, token, "api/v1/cluster")
    with faults.frozen("slurmctld"):
        until(
            lambda: answer(portal, token, "api/v1/cluster")["trouble"],
            seconds=90,
            what="the page says that Slurm does not answer",
        )
        during = answer(portal, token, "api/v1/cluster")
    assert [node["name"] for node in during["nodes"]] == [node["name"] for node in before["nodes"]]
    assert during["trouble"] == SLURM_SILENT
    until(
        lambda: answer(portal, token, "api/v1/cluster")["trouble"] is None,
        seconds=90,
        what="the page is up to date again",
    )
