"""Authorities, and certificates of servers that they signed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """Who signs."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey


def make_certificates(folder: Path, *, days: float = 2, address: str = "127.0.0.1") -> None:
    """Make an authority, and a server's certificate that ends in some days, or ended before."""
    folder.mkdir()
    name = _named("Test authority")
    authority = Authority(name, ec.generate_private_key(ec.SECP256R1()))
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    _write(folder / "ca", authority, name, authority.key, constraints, days=2)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
    key = ec.generate_private_key(ec.SECP256R1())
    _write(folder / "server", authority, _named("Test directory"), key, names, days=days)


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _write(
    path: Path,
    by: Authority,
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
    *,
    days: float,
) -> None:
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(by.name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=3))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key()), critical=False
        )
        .sign(by.key, hashes.SHA256())
    )
    path.with_suffix(".pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = path.with_suffix(".key")
    secret.touch(mode=0o600)
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
