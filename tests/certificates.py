"""An authority of a test's own, and the certificate of a server on loopback."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files: the authority, and what a server shows and keeps."""

    authority: Path
    server: Path
    key: Path


def make_certificates(folder: Path) -> Certificates:
    """Write an authority and a certificate for 127.0.0.1, good for an hour."""
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "key.pem")
    root, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = _name("test authority"), _name("127.0.0.1")
    authority = (
        _builder(issuer, issuer, root.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(root.public_key()), critical=False
        )
        .sign(root, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    server = (
        _builder(subject, issuer, key.public_key())
        .add_extension(names, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key()),
            critical=False,
        )
        .sign(root, hashes.SHA256())
    )
    for path, certificate in ((files.authority, authority), (files.server, server)):
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
    )
