"""A real directory of our own: OpenLDAP's slapd on a free port, with a few people in it."""

import contextlib
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

from tests import faults
from tests.integration.authentication.certificates import make_certificates
from tests.network.sockets import free_ports
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
moduleload ppolicy
pidfile {folder}/slapd.pid
loglevel 0
# Changes come through the ldapi socket, also where other connections must be encrypted.
localSSF 256
# As some directories do: a bind with a name and no password succeeds, as nobody.
allow bind_anon_cred
# What 389 Directory Server and FreeIPA have, whose schemas are not part of slapd.
attributetype ( 1.3.6.1.4.1.4203.666.99.1 NAME 'nsAccountLock'
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
attributetype ( 1.3.6.1.4.1.4203.666.99.2 NAME 'krbPrincipalExpiration'
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.24 SINGLE-VALUE )
objectclass ( 1.3.6.1.4.1.4203.666.99.3 NAME 'closable' AUXILIARY
  MAY ( nsAccountLock $ krbPrincipalExpiration ) )
{tls}
{extra}
database mdb
suffix "{base}"
directory {folder}
rootdn "{root_dn}"
rootpw {password}
overlay memberof
overlay ppolicy
ppolicy_use_lockout
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
    root_url: str
    process: subprocess.Popen[bytes]

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Let it accept connections and answer nothing."""
        faults.stop(self.process.pid)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def takes(self, dn: str, password: str) -> bool:
        """Whether it takes a password."""
        argv = ["/usr/bin/ldapwhoami", "-x", "-H", self.root_url, "-D", dn, "-w", password]
        return not subprocess.run(argv, check=False, capture_output=True, timeout=30).returncode

    def change(self, ldif: str, program: str = "ldapmodify", *options: str) -> None:
        """Change what it holds."""
        argv = [f"/usr/bin/{program}", "-x", "-H", self.root_url, "-D", ROOT_DN, "-w", PASSWORD]
        argv += options
        subprocess.run(
            argv,
            input=ldif,
            text=True,
            check=True,
            capture_output=True,
            timeout=30,
        )


_TLS = """\
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.key
"""


@contextlib.contextmanager
def full_queue() -> Iterator[str]:
    """Listen, with a queue of connections that is full, so that no more are accepted."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        yield f"ldap://127.0.0.1:{address[1]}"
        for one in waiting:
            one.close()


@contextlib.contextmanager
def running(folder: Path, extra: str = "", certificate_days: float | None = 2) -> Iterator[Slapd]:
    """Run a directory with its people in a folder, with a setting of slapd more; end it.

    Without days for its certificate it knows no TLS.
    """
    certificates, data = folder / "certificates", folder / "data"
    data.mkdir()
    tls = ""
    if certificate_days is not None:
        make_certificates(certificates, days=certificate_days)
        tls = _TLS.format(folder=certificates)
    settings = folder / "slapd.conf"
    settings.write_text(
        _SETTINGS.format(
            folder=data,
            tls=tls,
            extra=extra,
            base=BASE,
            root_dn=ROOT_DN,
            password=PASSWORD,
        )
    )
    port, tls_port = free_ports(2)
    url, tls_url = f"ldap://127.0.0.1:{port}", f"ldaps://127.0.0.1:{tls_port}"
    root_url = f"ldapi://{quote(str(folder / 'socket'), safe='')}"
    addresses = [f"{url}/", f"{root_url}/", *([f"{tls_url}/"] if tls else [])]
    process = subprocess.Popen(
        ["/usr/sbin/slapd", "-d", "0", "-f", str(settings), "-h", " ".join(addresses)]
    )
    try:
        until(lambda: accepts(port), seconds=30, what="slapd listens")
        directory = Slapd(url, tls_url, str(certificates / "ca.pem"), root_url, process)
        directory.change("\n".join((_PEOPLE, *_accounts(), _GROUPS)), "ldapadd")
        yield directory
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(timeout=30)


def _accounts() -> Iterator[str]:
    for name, gid in (("user1", 100), ("User2", 100), ("admin1", 100), ("user3", 10003)):
        yield _account(f"uid={name},{USER_BASE}", [name], gid)
    yield _account(f"uid=stranger,{USER_BASE}", ["stranger"], 100)
    yield _account(f"uid=user4,{USER_BASE}", ["user4", "other-name"], 10003)
    yield _account(f"uid=guest1,ou=guests,{USER_BASE}", ["guest1"], 100)
    # Two people with one name; a login that only looks at the base itself does not meet them.
    yield _account(f"uid=twice,{USER_BASE}", ["twice"], 10003)
    yield _account(f"uid=twice,ou=guests,{USER_BASE}", ["twice"], 10003)


def person(name: str, base: str = USER_BASE) -> str:
    """Give the entry of one more person, whose groups let in."""
    return _account(f"uid={name},{base}", [name], 10003)


def _account(dn: str, names: list[str], gid: int) -> str:
    uids = "\n".join(f"uid: {name}" for name in names)
    number = 20_000 + crc32(dn.encode()) % 1_000_000
    return (
        f"dn: {dn}\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\n{uids}\n"
        f"cn: {names[0]}\nsn: {names[0]}\nuidNumber: {number}\ngidNumber: {gid}\n"
        f"homeDirectory: /home/{names[0]}\nuserPassword: {PASSWORD}\n"
    )


def accepts(port: int) -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
