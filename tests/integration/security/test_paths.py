"""Ways out of what an address names: other folders, other hosts."""

import re
import uuid
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import httpx
import pytest

from tests.instance import PASSWORD, Instance
from tests.processes import running
from tests.visitor import Visitor
from tests.waiting import until

SECRET = "/etc/shadow"
UP = (
    "../../../../../../..",
    "..%2f..%2f..%2f..%2f..%2f..%2f..",
    "%2e%2e/" * 7,
    "/",
    "//",
    "....//" * 7,
)
NEXT = (
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/",
    "/\\evil.example",
    "\\\\evil.example",
    "https:evil.example",
    "javascript:alert(1)",
    "/hub/../..//evil.example",
    "/%09/evil.example",
    "%2f%2fevil.example",
    "https://HOST.evil.example/",
    "https://HOST@evil.example/",
    "http://HOST//evil.example",
    " https://evil.example",
)


def stays(portal: Instance, answer: httpx.Response) -> bool:
    """Whether a browser that follows the answer stays at the portal."""
    target = answer.headers.get("Location")
    if target is None:
        return True
    # As browsers read it: a backslash is a slash, tabs and line ends are nothing.
    read = target.replace("\\", "/").replace("\t", "").replace("\n", "").strip()
    there = urlsplit(urljoin(str(answer.request.url), read))
    here = urlsplit(portal.url)
    return (there.scheme, there.netloc) == (here.scheme, here.netloc)


@pytest.mark.parametrize("target", NEXT)
def test_a_login_never_leads_elsewhere(portal: Instance, owner: Visitor, target: str) -> None:
    target = target.replace("HOST", urlsplit(portal.url).netloc)
    visitor = Visitor(portal, owner.name)
    visitor.http.follow_redirects = False
    visitor.http.get("/hub/login")
    form = {"username": owner.name, "password": PASSWORD, "_xsrf": visitor.xsrf()}
    answer = visitor.http.post("/hub/login", params={"next": target}, data=form)
    assert answer.status_code == 302
    assert stays(portal, answer)
    # And once more for who is logged in already.
    assert stays(portal, visitor.http.get("/hub/login", params={"next": target}))
    visitor.close()


@pytest.mark.parametrize(
    "target",
    [
        "/user/NAME/lab",
        "/hub/user/NAME/lab",
        "/%75ser/NAME/lab",
        "/user/OWN/../NAME/lab",
        "/user/OWN/%252e%252e/NAME/lab",
        "/hub/user-redirect/%252e%252e/NAME/lab",
        "PORTAL/user/NAME/lab",
    ],
)
def test_a_login_never_leads_to_another_users_pages(
    portal: Instance, owner: Visitor, stranger: Visitor, target: str
) -> None:
    names = {"NAME": owner.name, "OWN": stranger.name, "PORTAL": portal.url}
    target = re.sub("NAME|OWN|PORTAL", lambda found: names[found[0]], target)
    visitor = Visitor(portal, stranger.name)
    visitor.http.follow_redirects = False
    visitor.http.get("/hub/login")
    form = {"username": stranger.name, "password": PASSWORD, "_xsrf": visitor.xsrf()}
    answers = [visitor.http.post("/hub/login", params={"next": target}, data=form)]
    answers.append(visitor.http.get("/hub/login", params={"next": target}))
    for answer in answers:
        assert answer.status_code == 302
        assert owner.name not in answer.headers["Location"]
    own = f"/user/{stranger.name}/lab"
    answer = visitor.http.get("/hub/login", params={"next": own})
    assert answer.headers["Location"] == own
    visitor.close()


@pytest.mark.parametrize(
    "path",
    [
        "/user/NAME//evil.example/",
        "/user/NAME/\\evil.example/",
        "/user/NAME/%2f%2fevil.example/",
        "//evil.example/..",
        "/hub//evil.example",
        "/hub/user-redirect//evil.example",
        "/hub/user-redirect/\\evil.example",
        "/hub/user/NAME//evil.example",
        "/hub/spawn/NAME?next=//evil.example",
        "/hub/logout?next=//evil.example",
        "/user/NAME/logout?next=//evil.example",
        "/user/NAME/oauth_callback?next=//evil.example",
        "/user/NAME/tensorboard/?folder=//evil.example",
        "/user/NAME/tools//evil.example/",
        "/services/cluster//evil.example/",
    ],
)
def test_no_page_leads_elsewhere(portal: Instance, owner: Visitor, path: str) -> None:
    headers = {"Authorization": f"token {owner.token()}"}
    url = portal.url + path.replace("NAME", owner.name)
    assert stays(portal, httpx.get(url, headers=headers, timeout=30))


@pytest.mark.parametrize("up", UP)
def test_no_address_reads_a_file_that_the_user_may_not(owner: Visitor, up: str) -> None:
    for base in (
        "/files",
        "/api/contents",
        "/view",
        "/static",
        "/lab/extensions",
        "/nbconvert/html",
    ):
        answer = owner.session("GET", f"{base}/{up}{SECRET}")
        assert "root:" not in answer.text, base
        assert answer.status_code in (302, 400, 403, 404), (base, answer.text)


def test_a_link_in_the_home_gives_nobody_elses_files(owner: Visitor, stranger: Visitor) -> None:
    home = Path(stranger.run("print(__import__('os').getcwd())").strip())
    theirs = home.parent / owner.name
    name = f"link-{uuid.uuid4().hex}"
    stranger.run(f"import os; os.symlink({str(theirs)!r}, {name!r})")
    for path in (
        f"/api/contents/{name}",
        f"/files/{name}/.bashrc",
        f"/api/contents/{name}/.bashrc",
    ):
        assert stranger.session("GET", path).status_code in (403, 404), path
    stranger.run(f"import os; os.unlink({name!r})")


@pytest.mark.parametrize("folder", ["/root", "../..", "../OWNER", "/etc\x00", "~root", "a" * 5000])
def test_tensorboard_opens_no_folder_that_the_user_may_not(
    owner: Visitor, stranger: Visitor, folder: str
) -> None:
    folder = quote(folder.replace("OWNER", owner.name))
    for path in ("/tensorboard/", "/portal/tensorboard/look"):
        answer = stranger.session("GET", f"{path}?folder={folder}")
        assert answer.status_code in (400, 403, 404, 409), answer.text
    assert stranger.session("GET", "/portal/tensorboard").json() == {"boards": []}


@pytest.mark.parametrize(
    "path", ["../../../etc/passwd", "/etc/passwd", "templates/../../OWNER/.bashrc", "a\x00b", ".."]
)
def test_only_templates_are_copied_as_templates(
    owner: Visitor, stranger: Visitor, path: str
) -> None:
    body = {"path": path.replace("OWNER", owner.name), "folder": ""}
    answer = stranger.session("POST", "/portal/templates/copy", json=body)
    assert answer.status_code in (400, 403, 404), answer.text
    into = {"path": "tensorflow/mnist.ipynb", "folder": f"../{owner.name}"}
    answer = stranger.session("POST", "/portal/templates/copy", json=into)
    assert answer.status_code in (400, 403, 404), answer.text


@pytest.mark.parametrize("name", ["..%2f..%2fbin%2fsh", "no-such-tool", "digits%00", "..", "%0a"])
def test_only_tools_that_are_set_are_run(stranger: Visitor, name: str) -> None:
    assert stranger.run("print('runs')").strip() == "runs"
    before = {one.pid for one in running(user=stranger.name)}
    assert stranger.session("GET", f"/tools/{name}/").status_code in (302, 400, 403, 404)
    assert stranger.session("DELETE", f"/portal/tools/{name}").status_code in (400, 403, 404)

    def is_as_before() -> bool:
        return {one.pid for one in running(user=stranger.name)} <= before

    until(is_as_before, seconds=20, what="nothing has been started")


@pytest.mark.parametrize("path", ["../../../../etc/shadow", "/etc/shadow", "1;id", "$(id)"])
def test_only_logs_of_own_jobs_are_shown(stranger: Visitor, path: str) -> None:
    answer = stranger.session("GET", "/portal/jobs/log", params={"job": path})
    assert answer.status_code == 400, answer.text
    assert "must be numbers" in answer.json()["message"]
