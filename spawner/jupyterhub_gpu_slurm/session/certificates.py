"""A session's certificate for JupyterHub's `internal_ssl`.

It is made where the session is submitted, without a file, and travels in the session's own input.
The node is not known yet, so it has the addresses of all nodes where the job may start; the hub
looks for one of them. They do not tell users apart. So it has a name for the user too, which the
proxy looks for (``proxy.mjs``): it would not hand a user's cookies to somebody else who
listens on the same port of the node later.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from jupyterhub_gpu_slurm.slurm.records import Cluster

# Nodes whose clocks are behind.
_CLOCKS = timedelta(hours=1)
_AUTHORITY = "notebooks-ca"
# An administrator may have made the job longer.
_SPARE = timedelta(days=30)


def session_name(username: str) -> str:
    """Return the name that all sessions of a user have, and nobody else's."""
    return f"{hashlib.sha256(username.encode()).hexdigest()[:32]}.session.internal"


@dataclass(frozen=True)
class Authority:
    """Certificate authority of the sessions, and the authorities that they trust."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey
    trusted: str
    """PEM: the hub's and the proxy's authorities, and not this one."""

    @classmethod
    def of_hub(cls, folder: Path, trusted_file: Path) -> "Authority":
        """Read what JupyterHub made."""
        files = folder / _AUTHORITY
        key = serialization.load_pem_private_key(
            (files / f"{_AUTHORITY}.key").read_bytes(), password=None
        )
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TypeError(f"{files}: the key is not an RSA key")
        certificate = x509.load_pem_x509_certificate((files / f"{_AUTHORITY}.crt").read_bytes())
        return cls(certificate, key, trusted_file.read_text(encoding="ascii"))

    def issue(
        self, username: str, addresses: Iterable[str], lasts: timedelta, now: datetime
    ) -> Mapping[str, str]:
        """Make a key and its certificate, as the session's input has them."""
        key = ec.generate_private_key(ec.SECP256R1())
        end = min(now + lasts, self.certificate.not_valid_after_utc)
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, session_name(username))])
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        made = (
            x509.CertificateBuilder()
            .subject_name(own)
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCKS)
            .not_valid_after(end)
            .add_extension(_alternatives([session_name(username), *addresses]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        pkcs8 = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return {
            "key": pkcs8.decode(),
            "certificate": made.public_bytes(serialization.Encoding.PEM).decode(),
            "authorities": self.trusted,
        }


def _alternatives(hosts: Iterable[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(host) for host in dict.fromkeys(hosts)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


_authority = lru_cache(Authority.of_hub)


@dataclass(frozen=True)
class CertificateIssuer:
    """Makes the certificate of a session where it is submitted, and none before.

    ``lasts`` is the longest that a session's time can be beyond what it asks for.
    """

    folder: Path
    trusted_file: Path
    lasts: timedelta

    def issue(
        self, username: str, cluster: Cluster, partition: str, time: timedelta
    ) -> Mapping[str, str]:
        """Return what the input of a session in this partition says of its certificate."""
        nodes = [
            node for each in cluster.partitions if each.name == partition for node in each.nodes
        ]
        return _authority(self.folder, self.trusted_file).issue(
            username,
            [host for node in nodes for host in (node.name, node.address)],
            time + self.lasts + _SPARE,
            datetime.now(UTC),
        )
