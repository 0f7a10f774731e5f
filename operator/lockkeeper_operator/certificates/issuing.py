"""Certificates: an authority's own, and those that it vouches for. PEM in, PEM out.

ECDSA on P-256, as every TLS library knows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=365)
CERTIFICATE_LIFE = timedelta(days=90)
CLOCKS_DIFFER = timedelta(hours=1)
"""By how much the clock of who looks at a certificate may be behind."""
RENEWED_AT = 2 / 3
"""Of its life."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is to be known of a pair: whether it fits, how long it lasts, and for which names."""

    begins: datetime
    ends: datetime
    names: tuple[str, ...]

    def is_fresh(self, now: datetime) -> bool:
        """Return whether it need not be renewed yet."""
        return self.begins <= now < self.begins + (self.ends - self.begins) * RENEWED_AT


def new_authority(name: str, now: datetime) -> Pair:
    """Return one that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(name, key, now, AUTHORITY_LIFE)
        .issuer_name(_named(name))
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
    )
    return _signed(builder, key, key)


def issued(authority: Pair, names: Sequence[str], now: datetime) -> Pair:
    """Return a certificate of a server that is known by *names*, with a key of its own."""
    issuer, issuer_key = _certificate(authority.certificate), _key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    whose = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    builder = (
        _builder("lockkeeper", key, now, CERTIFICATE_LIFE)
        .issuer_name(issuer.subject)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(whose, critical=False)
    )
    return _signed(builder, key, issuer_key)


def facts_of(pair: Pair, authority: str) -> Facts | None:
    """Return what is to be known of a pair; None where it is none, or not of that *authority*."""
    try:
        certificate, issuer = _certificate(pair.certificate), _certificate(authority)
        if certificate.public_key() != _key(pair.key).public_key():
            return None
        certificate.verify_directly_issued_by(issuer)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = tuple(found.value.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        names = ()
    except (ValueError, TypeError, InvalidSignature):
        return None
    return Facts(certificate.not_valid_before_utc, certificate.not_valid_after_utc, names)


def _builder(
    name: str, key: EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + life)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _signed(
    builder: x509.CertificateBuilder,
    key: EllipticCurvePrivateKey,
    by: EllipticCurvePrivateKey,
) -> Pair:
    certificate = builder.sign(by, hashes.SHA256())
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM).decode(), secret.decode())


def _certificate(text: str) -> x509.Certificate:
    """Return the first certificate of a text. Raises ValueError."""
    return x509.load_pem_x509_certificate(text.encode())


def _key(text: str) -> EllipticCurvePrivateKey:
    """Return a key. Raises ValueError or TypeError."""
    found = serialization.load_pem_private_key(text.encode(), None)
    if not isinstance(found, EllipticCurvePrivateKey):
        raise ValueError("no key on an elliptic curve")
    return found
