"""One certificate that all brokers of a run show, and the trust store of the client."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import certificates

PASSWORD = "changeit"


@dataclass(frozen=True)
class Identity:
    """Files: the authority's certificate, the brokers', its key, and both of Java's stores."""

    authority: Path
    certificate: Path
    key: Path
    keystore: Path
    truststore: Path

    @property
    def java_options(self) -> list[str]:
        """The options of a Java client that trusts the authority."""
        store = "-Djavax.net.ssl.trustStore"
        return [f"{store}={self.truststore}", f"{store}Password={PASSWORD}"]


def make(directory: Path) -> Identity:
    """Make a certificate for loopback. Raises RuntimeError when there is no openssl."""
    reason = certificates.missing()
    if reason:
        raise RuntimeError(f"No TLS: {reason}.")
    authority = certificates.Authority(directory)
    certificate, key = authority.issue("broker")
    keystore, truststore = directory / "broker.p12", directory / "trusted.p12"
    export: list[object] = [
        "openssl",
        "pkcs12",
        "-export",
        "-in",
        certificate,
        "-inkey",
        key,
        "-out",
        keystore,
    ]
    trust: list[object] = [
        "keytool",
        "-importcert",
        "-noprompt",
        "-alias",
        "authority",
        "-storetype",
        "PKCS12",
    ]
    trust += ["-file", authority.certificate, "-keystore", truststore, "-storepass", PASSWORD]
    for command in ([*export, "-passout", f"pass:{PASSWORD}"], trust):
        subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=60)
    return Identity(authority.certificate, certificate, key, keystore, truststore)
