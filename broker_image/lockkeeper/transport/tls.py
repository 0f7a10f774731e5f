"""Encryption of a listener: what a certificate, its key and an authority make."""

import ssl
from pathlib import Path

SHUTDOWN_SECONDS_MAX = 5.0
CLIENT_CERTIFICATES = {
    "Ignored": ssl.CERT_NONE,
    "Wanted": ssl.CERT_OPTIONAL,
    "Required": ssl.CERT_REQUIRED,
}
"""Whether clients show certificates, as the resource says it."""


class CertificateError(ValueError):
    """A certificate, key or authority cannot be used; the text names the file."""


def server_context(
    certificate: Path, key: Path, authority: Path, client_certificates: str
) -> ssl.SSLContext:
    """Return what encrypts connections: TLS 1.2 or later.

    *authority* is read where clients show certificates. Raises CertificateError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=no_password)
    except (OSError, ValueError) as error:
        files = f"{certificate}, {key.name}"
        raise CertificateError(f"{files}: {_reason(error)}") from error
    context.verify_mode = CLIENT_CERTIFICATES[client_certificates]
    if context.verify_mode != ssl.CERT_NONE:
        try:
            context.load_verify_locations(authority)
        except (OSError, ValueError) as error:
            raise CertificateError(f"{authority}: {_reason(error)}") from error
    return context


def no_password() -> str:
    """Keep OpenSSL from asking the terminal for one."""
    raise ValueError("the key needs a password; only keys without one can be used")


def _reason(error: Exception) -> str:
    """Return what is wrong in words for people."""
    if isinstance(error, ssl.SSLError):
        known = {
            "KEY_VALUES_MISMATCH": "the key is not that of the certificate",
            "NO_START_LINE": "it is no PEM of what is needed",
        }
        reason = error.reason or "NO_START_LINE"
        return known.get(reason, reason.lower().replace("_", " "))
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
