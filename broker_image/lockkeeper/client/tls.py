"""TLS towards a broker: whom to trust, who we are, and a socket that two threads may use."""

import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lockkeeper.client.errors import BrokerUrlError
from lockkeeper.transport.tls import no_password


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Certificates for brokers at `ssl://`; files are PEM.

    Without `ca_file` the system's authorities are trusted. `certificate_file` and `key_file`
    are shown to brokers that want to see who we are; a file may hold both.
    """

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    verify_host_name: bool = True

    def context(self) -> ssl.SSLContext:
        """Return what encrypts connections. Raises BrokerUrlError for files of no use."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ValueError) as error:
            raise BrokerUrlError(f"{self.ca_file}: {_reason(error)}") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_host_name
        if self.certificate_file is not None:
            try:
                context.load_cert_chain(self.certificate_file, self.key_file, no_password)
            except (OSError, ValueError) as error:
                raise BrokerUrlError(f"{self.certificate_file}: {_reason(error)}") from error
        elif self.key_file is not None:
            raise BrokerUrlError(f"{self.key_file}: a key without a certificate is of no use")
        return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "it is no PEM of certificates, or the key is another one's"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class SecureSocket:
    """An encrypted socket that never blocks; one thread may receive while another one sends.

    Has the methods of a socket that `Link` needs; BlockingIOError means: later.
    """

    def __init__(self, raw: socket.socket, host: str, options: TlsOptions) -> None:
        """Wrap a connected socket that does not block. Raises OSError."""
        self._socket = options.context().wrap_socket(
            raw, server_hostname=host, do_handshake_on_connect=False
        )
        # OpenSSL reads and writes the same state in both directions.
        self._lock = threading.Lock()

    def shake_hands(self) -> Literal["read", "write"] | None:
        """Go on with the handshake; return what to wait for, None when it is done. OSError."""
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            return "read"
        except ssl.SSLWantWriteError:
            return "write"
        return None

    def fileno(self) -> int:
        """Return the descriptor, to wait for what arrives."""
        return self._socket.fileno()

    def recv(self, size: int) -> bytes:
        """Return what has arrived, *size* bytes at most; nothing at the end."""
        try:
            with self._lock:
                return self._all_of_record(self._socket.recv(size))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def _all_of_record(self, data: bytes) -> bytes:
        """Return *data* with what is decrypted already, which no selector knows of."""
        pending = self._socket.pending()
        return data + self._socket.recv(pending) if pending else data

    def send(self, data: "bytes | memoryview") -> int:
        """Send as much as the system takes, and return how many bytes that were."""
        try:
            with self._lock:
                return self._socket.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def shutdown(self, how: int) -> None:
        """Wake up whoever waits at the socket; encryption stays, so that nobody reads noise."""
        socket.socket.shutdown(self._socket, how)

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()
