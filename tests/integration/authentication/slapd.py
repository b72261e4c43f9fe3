"""A real directory of our own: OpenLDAP's slapd on a free port, with a few people in it."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until

BASE = "dc=portal,dc=example"
USER_BASE = f"ou=people,{BASE}"
GROUP_BASE = f"ou=groups,{BASE}"
ROOT_DN = f"cn=root,{BASE}"
READER_DN = f"cn=reader,{BASE}"
PASSWORD = "portal"

_SETTINGS = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
loglevel 0
# As some directories do: a bind with a name and no password succeeds, as nobody.
allow bind_anon_cred
TLSCACertificateFile {certificates}/ca.pem
TLSCertificateFile {certificates}/server.pem
TLSCertificateKeyFile {certificates}/server.key
{extra}
database mdb
suffix "{base}"
directory {folder}
rootdn "{root_dn}"
rootpw {password}
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by * read
"""

_PEOPLE = f"""\
dn: {BASE}
objectClass: dcObject
objectClass: organization
dc: portal
o: Portal

dn: {USER_BASE}
objectClass: organizationalUnit
ou: people

dn: ou=guests,{USER_BASE}
objectClass: organizationalUnit
ou: guests

dn: {GROUP_BASE}
objectClass: organizationalUnit
ou: groups

dn: {READER_DN}
objectClass: simpleSecurityObject
objectClass: organizationalRole
cn: reader
userPassword: {PASSWORD}
"""

_GROUPS = f"""\
dn: cn=data-scientists,{GROUP_BASE}
objectClass: posixGroup
cn: data-scientists
gidNumber: 10001
memberUid: user1
memberUid: User2

dn: cn=portal-admins,{GROUP_BASE}
objectClass: posixGroup
cn: portal-admins
gidNumber: 10002
memberUid: admin1

dn: cn=unix-primary,{GROUP_BASE}
objectClass: posixGroup
cn: unix-primary
gidNumber: 10003

dn: cn=vision,{GROUP_BASE}
objectClass: groupOfNames
cn: vision
cn: computer vision
member: uid=user1,{USER_BASE}
member: uid=guest1,ou=guests,{USER_BASE}
"""


@dataclass(frozen=True)
class Slapd:
    """A directory that runs."""

    url: str
    tls_url: str
    ca_file: str
    process: subprocess.Popen[bytes]

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Let it accept connections and answer nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def change(self, ldif: str, program: str = "ldapmodify") -> None:
        """Change what it holds."""
        argv = [f"/usr/bin/{program}", "-x", "-H", self.tls_url, "-D", ROOT_DN, "-w", PASSWORD]
        environment = {**os.environ, "LDAPTLS_CACERT": self.ca_file}
        subprocess.run(
            argv,
            input=ldif,
            text=True,
            check=True,
            capture_output=True,
            timeout=30,
            env=environment,
        )


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(folder: Path, extra: str = "") -> Iterator[Slapd]:
    """Run a directory with its people in a folder, with a setting of slapd more; end it."""
    certificates, data = folder / "certificates", folder / "data"
    data.mkdir()
    make_certificates(certificates)
    settings = folder / "slapd.conf"
    settings.write_text(
        _SETTINGS.format(
            folder=data,
            certificates=certificates,
            extra=extra,
            base=BASE,
            root_dn=ROOT_DN,
            password=PASSWORD,
        )
    )
    url, tls_url = (f"{scheme}://127.0.0.1:{free_port()}" for scheme in ("ldap", "ldaps"))
    process = subprocess.Popen(
        ["/usr/sbin/slapd", "-d", "0", "-f", str(settings), "-h", f"{url}/ {tls_url}/"]
    )
    try:
        port = int(url.rsplit(":", 1)[1])
        until(lambda: _accepts(port), seconds=30, what="slapd listens")
        directory = Slapd(url, tls_url, str(certificates / "ca.pem"), process)
        directory.change("\n".join((_PEOPLE, *_accounts(), _GROUPS)), "ldapadd")
        yield directory
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(timeout=30)


def make_certificates(folder: Path) -> None:
    """Make an authority, and a certificate of 127.0.0.1 that it has signed."""
    folder.mkdir()
    ca, server = folder / "ca", folder / "server"
    _certificate(ca, "/CN=Test authority", "basicConstraints=critical,CA:TRUE")
    signer = ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key"]
    _certificate(server, "/CN=Test directory", "subjectAltName=IP:127.0.0.1", *signer)


def _certificate(path: Path, subject: str, extension: str, *signer: str) -> None:
    argv = ["/usr/bin/openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    argv += ["-subj", subject, "-addext", extension, *signer]
    argv += ["-keyout", f"{path}.key", "-out", f"{path}.pem"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)


def _accounts() -> Iterator[str]:
    for name, gid in (("user1", 100), ("User2", 100), ("admin1", 100), ("user3", 10003)):
        yield _account(f"uid={name},{USER_BASE}", [name], gid)
    yield _account(f"uid=stranger,{USER_BASE}", ["stranger"], 100)
    yield _account(f"uid=user4,{USER_BASE}", ["user4", "other-name"], 10003)
    yield _account(f"uid=guest1,ou=guests,{USER_BASE}", ["guest1"], 100)


def _account(dn: str, names: list[str], gid: int) -> str:
    uids = "\n".join(f"uid: {name}" for name in names)
    return (
        f"dn: {dn}\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\n{uids}\n"
        f"cn: {names[0]}\nsn: {names[0]}\nuidNumber: 10100\ngidNumber: {gid}\n"
        f"homeDirectory: /home/{names[0]}\nuserPassword: {PASSWORD}\n"
    )


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
