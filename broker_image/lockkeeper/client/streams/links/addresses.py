"""Addresses of name servers and brokers, and who connects to them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from lockkeeper.client.streams.errors import AddressError
from lockkeeper.client.tls import TlsOptions
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.signatures import ACCESS_KEY, SIGNATURE, TOKEN, signature_of


class Address(NamedTuple):
    """Host and port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return it as RocketMQ writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address that `host:port` names. Raises AddressError."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or not port.isascii() or not port.isdigit():
        raise AddressError(f"{text!r} is not of the form host:port")
    if not 0 < int(port) <= 0xFFFF:
        raise AddressError(f"the port in {text!r} is not 1 to 65535")
    return Address(host, int(port))


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses that `host:port;host:port` names. Raises AddressError."""
    found = [parse_address(each) for each in text.split(";") if each.strip()]
    if not found:
        raise AddressError("no address of a name server: 'host:port', several with ';' between")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user as RocketMQ's clients name one: requests are signed with the secret key.

    Lockkeeper wants the password as secret key and as security token, which travels: use TLS. A
    RocketMQ checks signatures without a token.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def sign(self, request: Command) -> None:
        """Put the user and the signature into a request."""
        request.fields[ACCESS_KEY] = self.access_key
        if self.security_token is not None:
            request.fields[TOKEN] = self.security_token
        request.fields[SIGNATURE] = signature_of(request, self.secret_key)


@dataclass(frozen=True, slots=True)
class Means:
    """Means to make links: who connects, encrypted if there are `tls` options, limits.

    Times are in seconds.
    """

    credentials: Credentials | None = None
    tls: TlsOptions | None = None
    connect_timeout: float = 5.0
    request_timeout: float = 10.0
    heartbeat_interval: float = 10.0
    route_interval: float = 30.0
    frame_bytes_max: int = 64 << 20
