"""TLS at the admin endpoint of a pod, with a certificate that comes and is renewed as a Secret.

Where there is one, what is below /api/ is answered over TLS, and else only to who asks from
within the pod, as `kubectl port-forward` and a shell there do: no token goes over the network.
"""

import logging
import ssl
from ipaddress import IPv6Address, ip_address
from pathlib import Path

from aiohttp import web

from lockkeeper.server.admin.answers import Handler, refusal
from lockkeeper.server.admin.token import GUARDED_PATH
from lockkeeper.server.secrets import InvalidSecretError, signature
from lockkeeper.transport.tls import CertificateError, server_context

DIRECTORY = "admin-tls"
logger = logging.getLogger(__name__)


class AdminEncryption:
    """The certificate of the admin endpoint, as it is on disk at the moment.

    `files` are the certificate and its key, `seen` is their signature from before they were read.
    Before there is one that can be used, every handshake fails: a broker serves clients all the
    same, and `/healthz` answers.
    """

    def __init__(self, secrets: Path) -> None:
        directory = secrets / DIRECTORY
        self.files = [directory / name for name in ("tls.crt", "tls.key")]
        self.seen = signature(self.files)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            self.reload()
        except InvalidSecretError as error:
            logger.error("%s; the operator cannot ask this broker", error)

    def reload(self) -> None:
        """Go on with what the files say, for connections that begin from now on.

        Raises InvalidSecretError, and then stays as it was.
        """
        certificate, key = self.files
        try:
            # Of a pair that does not fit, half would be taken: it is tried elsewhere first.
            server_context(certificate, key, certificate, "Ignored")
        except CertificateError as error:
            raise InvalidSecretError(str(error)) from error
        self.context.load_cert_chain(certificate, key)


def encryption_of(secrets: Path | None) -> AdminEncryption | None:
    """Return what encrypts the endpoint; None where no certificate is meant to be."""
    if secrets is None or not (secrets / DIRECTORY).is_dir():
        return None
    return AdminEncryption(secrets)


@web.middleware
async def refuse_in_the_clear(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 403 to who would send a token, and be told of the broker, over the network."""
    if request.path.startswith(GUARDED_PATH) and not (request.secure or _is_local(request)):
        return refusal(403, "ask over TLS: https, at spec.admin.tlsPort")
    return await handler(request)


def _is_local(request: web.Request) -> bool:
    """Return whether a request comes from this machine, which a pod is for itself."""
    peer = request.transport and request.transport.get_extra_info("peername")
    if not peer:
        return False
    address = ip_address(str(peer[0]).partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
