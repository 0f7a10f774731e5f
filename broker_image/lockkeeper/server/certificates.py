"""Certificates of listeners: where they lie, and the server that goes on with new ones."""

import logging
import ssl
from pathlib import Path

from lockkeeper.server.secrets import InvalidSecretError, signature
from lockkeeper.transport.tls import CertificateError, server_context
from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster.exposure import Tls

logger = logging.getLogger(__name__)

DIRECTORY = "tls"


class Encryption:
    """The certificate of one listener, as it is on disk at the moment.

    `files` are the certificate, its key, and the authority of clients' certificates; `seen` is
    their signature from before they were read.
    """

    def __init__(self, listener: Listener, tls: Tls, secrets: Path) -> None:
        """Read the files. Raises InvalidSecretError."""
        directory = secrets / DIRECTORY / listener.name
        self.files = [directory / name for name in ("tls.crt", "tls.key", "ca.crt")]
        self.seen = signature(self.files)
        self._client_certificates = tls.client_certificates
        self.context = self._read()

    def _read(self) -> ssl.SSLContext:
        try:
            certificate, key, authority = self.files
            return server_context(certificate, key, authority, self._client_certificates)
        except CertificateError as error:
            raise InvalidSecretError(str(error)) from error

    def reload(self) -> None:
        """Read the files again. Raises InvalidSecretError, and then stays as it was."""
        self.context = self._read()


def encryption(listener: Listener, secrets: Path | None) -> Encryption | None:
    """Return what encrypts a listener; None: nothing does. Raises InvalidSecretError.

    Without a directory of *secrets* nothing can: this is a local process, which says so.
    """
    if listener.tls is None:
        return None
    if secrets is None:
        logger.warning("listener %s: no --secrets, so its tls is left out", listener.name)
        return None
    return Encryption(listener, listener.tls, secrets)
