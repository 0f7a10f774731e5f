"""Certificates for tests, made by the openssl command: an authority, and who it vouches for."""

import shutil
import subprocess
from pathlib import Path


def missing() -> str | None:
    """Return why there can be no certificates on this machine, or None."""
    return None if shutil.which("openssl") else "there is no openssl command"


def _openssl(*arguments: object) -> None:
    command = ["openssl", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


class Authority:
    """Vouches for the certificates that it issues; `certificate` is its own."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.certificate = directory / f"{name}.crt"
        self._key = directory / f"{name}.key"
        self._serial = 0
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", 2, "-subj", f"/CN={name}"),
            *("-keyout", self._key, "-out", self.certificate),
        )

    def issue(self, name: str, host: str = "127.0.0.1") -> tuple[Path, Path]:
        """Return a certificate for *host*, an IP address or `localhost`, and its key."""
        self._serial += 1
        base = self._directory / f"{name}-{self._serial}"
        certificate, key, request = (base.with_suffix(end) for end in (".crt", ".key", ".csr"))
        extensions = base.with_suffix(".ext")
        kind = "DNS" if host == "localhost" else "IP"
        extensions.write_text(f"subjectAltName={kind}:{host}\n")
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", key, "-out", request),
        )
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key),
            *("-set_serial", self._serial, "-days", 2, "-extfile", extensions),
            *("-out", certificate),
        )
        return certificate, key
