"""A real Active Directory of our own: Samba's domain controller, with a few people in it.

It listens on LDAP's own ports, which cannot be changed, so it has an address of the loopback
network for itself. None is added to the interface: at such a change, Chromium gives up the requests
that have not been sent yet (``ERR_NETWORK_CHANGED``), those of the tests beside this one.
"""

import contextlib
import os
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.integration.authentication.certificates import make_certificates
from tests.waiting import until

BASE = "DC=corp,DC=example"
USERS = f"CN=Users,{BASE}"
PASSWORD = "Portal-1234"
READER_DN = f"CN=reader,{USERS}"
# [MS-ADTS] 2.2.16: a normal account; the same, disabled.
NORMAL, DISABLED = 512, 514
# 100 ns since 1601: in 2019.
LONG_AGO = 132000000000000000

_PEOPLE = (
    ("Jane Doe", "Jane.Doe", NORMAL, ""),
    ("reader", "reader", NORMAL, ""),
    ("off", "off", DISABLED, ""),
    ("over", "over", NORMAL, f"accountExpires: {LONG_AGO}\n"),
    ("must", "must", NORMAL, "pwdLastSet: 0\n"),
    # Who calls himself like somebody else.
    ("Mallory", "mallory", NORMAL, "userPrincipalName: jane.doe@guests.example\n"),
)
_GROUPS = (
    ("inner", "Jane Doe"),
    ("middle", "inner"),
    ("Data-Scientists", "middle"),
    ("Everybody", "Domain Users"),
)
_OPTIONS = {
    "bind interfaces only": "yes",
    "server services": "ldap",
    "vfs objects": "dfs_samba4 acl_xattr xattr_tdb",
    "log file": "{folder}/samba.log",
    "pid directory": "{folder}",
    "interfaces": "{address}/8",
    "tls cafile": "{folder}/certificates/ca.pem",
    "tls certfile": "{folder}/certificates/server.pem",
    "tls keyfile": "{folder}/certificates/server.key",
}


@dataclass(frozen=True)
class Samba:
    """A domain controller that runs."""

    url: str
    tls_url: str
    ca_file: str

    def domain_sid(self) -> str:
        """Tell the domain's identifier as text ([MS-DTYP] 2.4.2)."""
        argv = ["/usr/bin/ldapsearch", "-LLL", "-x", "-H", self.tls_url, "-w", PASSWORD]
        argv += ["-D", "administrator@corp.example", "-b", BASE, "-s", "base", "objectSid"]
        line = next(
            line for line in _run(argv, ca_file=self.ca_file).splitlines() if "Sid:: " in line
        )
        sid = b64decode(line.partition(":: ")[2])
        parts = [int.from_bytes(sid[at : at + 4], "little") for at in range(8, len(sid), 4)]
        return "-".join(map(str, ("S", sid[0], int.from_bytes(sid[2:8], "big"), *parts)))

    def change(self, ldif: str) -> None:
        """Change what it holds."""
        argv = ["/usr/bin/ldapmodify", "-x", "-H", self.tls_url, "-w", PASSWORD]
        argv += ["-D", "administrator@corp.example"]
        _run(argv, text=ldif, ca_file=self.ca_file)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Samba]:
    """Run a domain controller in a folder; end it."""
    # Another one for another run of the tests.
    number = os.getpid()
    address = f"127.77.{number >> 8 & 255}.{number & 255}"
    make_certificates(folder / "certificates", address=address)
    _provision(folder, address)
    argv = ["/usr/sbin/samba", "--interactive", "--model=single", "--no-process-group"]
    argv += ["--debug-stdout", "--debuglevel=0", f"--configfile={folder}/etc/smb.conf"]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        found = Samba(
            f"ldap://{address}", f"ldaps://{address}", str(folder / "certificates" / "ca.pem")
        )
        until(lambda: _answers(found), seconds=60, what="Samba answers")
        found.change("\n".join((*_people(), *_groups())))
        yield found
    finally:
        process.terminate()
        process.wait(timeout=30)


def _provision(folder: Path, address: str) -> None:
    argv = ["/usr/bin/samba-tool", "domain", "provision", f"--targetdir={folder}"]
    argv += ["--realm=CORP.EXAMPLE", "--domain=CORP", "--host-name=dc1", f"--host-ip={address}"]
    argv += ["--server-role=dc", "--dns-backend=NONE", f"--adminpass={PASSWORD}"]
    for name, value in _OPTIONS.items():
        argv.append(f"--option={name}={value.format(folder=folder, address=address)}")
    _run(argv)


def _answers(found: Samba) -> bool:
    argv = ["/usr/bin/ldapsearch", "-x", "-H", found.url, "-b", "", "-s", "base", "1.1"]
    return not subprocess.run(argv, check=False, capture_output=True, timeout=30).returncode


def _people() -> Iterator[str]:
    for cn, name, control, more in _PEOPLE:
        yield (
            f"dn: CN={cn},{USERS}\nchangetype: add\nobjectClass: user\nsAMAccountName: {name}\n"
            f"{password_line(PASSWORD)}userAccountControl: {control}\n{more}"
        )


def password_line(text: str) -> str:
    """Give a password as the attribute that sets it takes it ([MS-ADTS] 3.1.1.3.1.5)."""
    quoted = f'"{text}"'.encode("utf-16-le")
    return f"unicodePwd:: {b64encode(quoted).decode()}\n"


def _groups() -> Iterator[str]:
    for name, member in _GROUPS:
        yield (
            f"dn: CN={name},{USERS}\nchangetype: add\nobjectClass: group\n"
            f"sAMAccountName: {name}\nmember: CN={member},{USERS}\n"
        )


def _run(argv: list[str], text: str = "", ca_file: str = "") -> str:
    done = subprocess.run(
        argv,
        input=text,
        text=True,
        check=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, "LDAPTLS_CACERT": ca_file},
    )
    return done.stdout
