"""The directory of the hosts' people: two real servers (slapd) with the same content, over TLS."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.debian.machines import Enclosure
from tests.instance import PASSWORD
from tests.waiting import until

BASE = "dc=site,dc=test"
GROUPS = {"data-scientists": 10001, "portal-admins": 10002}
PEOPLE = {"user1": 10001, "user2": 10001, "user3": 10001, "admin1": 10002}
"""Login names, and the number of the primary group."""
# As Python 3.13 wants it.
_AUTHORITY = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign")
NO_AUTHORITY = "basicConstraints=critical,CA:FALSE"
_ROOT = f"cn=root,{BASE}"

_SETTINGS = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
loglevel 0
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.key
database mdb
suffix "{base}"
directory {folder}/data
rootdn "{root}"
rootpw {password}
access to attrs=userPassword by anonymous auth by * none
access to * by * read
"""


def serve(enclosure: Enclosure, folder: Path, address: str) -> subprocess.Popen[bytes]:
    """Run one server at an address of the enclosure, with all people; FOLDER holds the authority.

    The file ``ca.pem`` beside its own folder is made with the first server.
    """
    own = folder / address
    enclosure.path(own / "data").mkdir(parents=True)
    _certificates(enclosure, folder, address)
    words = {"folder": own, "base": BASE, "root": _ROOT, "password": PASSWORD}
    enclosure.path(own / "slapd.conf").write_text(_SETTINGS.format(**words))
    enclosure.path(own / "people.ldif").write_text(_content())
    enclosure.run("/sbin/ip", "address", "add", f"{address}/24", "dev", "br0")
    server = enclosure.start(
        *("/usr/sbin/slapd", "-d", "0", "-f", own / "slapd.conf"),
        *("-h", f"ldap://{address}/ ldaps://{address}/"),
    )
    until(lambda: _loaded(enclosure, own, address), seconds=30, what="slapd has its people")
    return server


def numbers(name: str) -> tuple[int, int]:
    """Return somebody's user number and group number."""
    return 10001 + list(PEOPLE).index(name), PEOPLE[name]


def _loaded(enclosure: Enclosure, own: Path, address: str) -> bool:
    bind = ("-x", "-H", f"ldap://{address}", "-D", _ROOT, "-w", PASSWORD)
    try:
        enclosure.run("/usr/bin/ldapadd", *bind, "-f", own / "people.ldif")
    except RuntimeError as error:
        if "Can't contact LDAP server" not in str(error):
            raise
        return False
    return True


def _certificates(enclosure: Enclosure, folder: Path, address: str) -> None:
    """Make the authority when it is missing, and a certificate of this address."""
    ca = folder / "ca"
    if not enclosure.path(f"{ca}.pem").exists():
        make_certificate(enclosure, ca, "/CN=Site", _AUTHORITY)
    signer = ("-CA", f"{ca}.pem", "-CAkey", f"{ca}.key")
    server = folder / address / "server"
    name = (NO_AUTHORITY, f"subjectAltName=IP:{address}")
    make_certificate(enclosure, server, f"/CN={address}", name, *signer)


def make_certificate(
    enclosure: Enclosure, path: Path, subject: str, extensions: Sequence[str], *signer: str
) -> None:
    """Make PATH.key and PATH.pem, signed by itself unless a signer is named."""
    argv = ["/usr/bin/openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    argv += [word for extension in extensions for word in ("-addext", extension)]
    enclosure.run(*argv, "-subj", subject, *signer, "-keyout", f"{path}.key", "-out", f"{path}.pem")


def _content() -> str:
    entries = [f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\ndc: site\no: Site\n"]
    for unit in ("people", "groups"):
        entries.append(f"dn: ou={unit},{BASE}\nobjectClass: organizationalUnit\n")
    for name, gid in GROUPS.items():
        entries.append(
            f"dn: cn={name},ou=groups,{BASE}\nobjectClass: posixGroup\ngidNumber: {gid}\n"
        )
    for name in PEOPLE:
        uid, gid = numbers(name)
        entries.append(
            f"dn: uid={name},ou=people,{BASE}\nobjectClass: inetOrgPerson\n"
            f"objectClass: posixAccount\ncn: {name}\nsn: {name}\nuidNumber: {uid}\n"
            f"gidNumber: {gid}\nhomeDirectory: /home/{name}\nloginShell: /bin/bash\n"
            f"userPassword: {PASSWORD}\n"
        )
    return "\n".join(entries)
