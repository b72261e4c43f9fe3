"""The directory that the project supplies: slapd, set up from the templates of role directory."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.instance import ROOT
from tests.integration.authentication.slapd import BASE, PASSWORD, accepts
from tests.network.sockets import free_port
from tests.waiting import until

ROLE = ROOT / "deploy/ansible/roles/directory"
PEOPLE = ("user1", "user2", "user3")
_POLICY = f"cn=logins,ou=policies,{BASE}"


@dataclass(frozen=True)
class Supplied:
    """One that runs."""

    url: str
    root_url: str

    def as_root(self, ldif: str, program: str = "ldapmodify") -> None:
        """Change what it holds, as the machine's root may."""
        argv = [f"/usr/bin/{program}", "-Q", "-Y", "EXTERNAL", "-H", self.root_url]
        subprocess.run(argv, input=ldif, text=True, check=True, capture_output=True, timeout=30)

    def lock_for(self, seconds: int) -> None:
        """Let locks be of another length."""
        change = f"replace: pwdLockoutDuration\npwdLockoutDuration: {seconds}"
        self.as_root(f"dn: {_POLICY}\nchangetype: modify\n{change}\n")


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Supplied]:
    """Run one with a few people; end it."""
    port, socket = free_port(), quote(str(folder / "run/slapd/ldapi"), safe="")
    for name in ("run/slapd", "state/directory", "settings"):
        (folder / name).mkdir(parents=True)
    config, people = (_filled(folder, name) for name in ("config.ldif", "people.ldif"))
    load = ["/usr/sbin/slapadd", "-n", "0", "-F", str(folder / "settings"), "-l", str(config)]
    subprocess.run(load, check=True, capture_output=True, timeout=60)
    supplied = Supplied(f"ldap://127.0.0.1:{port}", f"ldapi://{socket}")
    serve = ["/usr/sbin/slapd", "-d", "0", "-F", str(folder / "settings")]
    process = subprocess.Popen([*serve, "-h", f"{supplied.url}/ {supplied.root_url}/"])
    try:
        until(lambda: accepts(port), seconds=30, what="slapd listens")
        supplied.as_root(people.read_text(), "ldapadd")
        yield supplied
    finally:
        process.terminate()
        process.wait(timeout=30)


def _filled(folder: Path, name: str) -> Path:
    """Fill in one of the role's templates, as the role does."""
    variables = folder / "variables.json"
    variables.write_text(json.dumps(_variables(folder)))
    argv = [str(Path(sys.executable).with_name("ansible")), "localhost", "-c", "local"]
    argv += ["-m", "ansible.builtin.template", "-e", f"@{ROLE}/defaults/main.yml"]
    argv += ["-e", f"@{ROLE}/vars/main.yml", "-e", f"@{variables}"]
    argv += ["-a", f"src={ROLE}/templates/{name}.j2 dest={folder}/{name} mode=0600"]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    return folder / name


def _variables(folder: Path) -> dict[str, Any]:
    names = [{"name": name, "full_name": name, "uid": 12000 + n} for n, name in enumerate(PEOPLE)]
    return {
        "ansible_python_interpreter": "/usr/bin/python3",
        "directory_base": BASE,
        "instance_run": f"{folder}/run",
        "instance_state": f"{folder}/state",
        "instance_homes": "/home",
        "instance_first_password": PASSWORD,
        "instance_groups": [{"name": "data-scientists", "gid": 12000}],
        "instance_users": [{**each, "group": "data-scientists"} for each in names],
    }
