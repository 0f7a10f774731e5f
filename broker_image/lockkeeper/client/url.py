"""Broker URLs: `tcp://host:port?option=…`, `ssl://…` and `failover:(uri,uri)?option=…`.

Options have ActiveMQ's names and defaults; times are in ms, as there. An unknown option is an
error. Options of a failover URL that begin with `nested.` hold for each address in it. Files of
certificates, which Java has in key stores, are options that begin with `ssl.`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from lockkeeper.client.errors import BrokerUrlError
from lockkeeper.client.tls import TlsOptions

DEFAULT_PORT = 61616
DEFAULT_TLS_PORT = 61617
UNLIMITED = -1
NESTED = "nested."
USER, PASSWORD = "jms.userName", "jms.password"
_SECRET = re.compile(rf"({re.escape(PASSWORD)}=)[^&)'\"]*")


@dataclass(frozen=True, slots=True)
class TcpOptions:
    """Options of one address; times in ms, an inactivity duration of 0 means no check."""

    connection_timeout: int = 30_000
    tcp_no_delay: bool = True
    keep_alive: bool = False
    inactivity_duration: int = 30_000
    inactivity_initial_delay: int = 10_000
    frame_bytes_max: int = 104_857_600


@dataclass(frozen=True, slots=True)
class FailoverOptions:
    """Number and delays of reconnections; delays in ms, -1 means no limit."""

    initial_reconnect_delay: int = 10
    max_reconnect_delay: int = 30_000
    use_exponential_back_off: bool = True
    reconnect_delay_exponent: float = 2.0
    max_reconnect_attempts: int = UNLIMITED
    startup_max_reconnect_attempts: int = UNLIMITED
    randomize: bool = True
    timeout: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class Address:
    """One broker; encrypted with `tls` options, even if they are the defaults."""

    host: str
    port: int
    options: TcpOptions = TcpOptions()
    tls: TlsOptions | None = None

    def __str__(self) -> str:
        """Return the URL without its options."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "tcp" if self.tls is None else "ssl"
        return f"{scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits of calls to a connected broker, in ms; 0 means no limit, except for `close`.

    `send` is for messages, which flow control may hold up for as long as it takes (ActiveMQ's
    default, too); `request` for everything else. `close` is for all of `Connection.close`.
    """

    send: int = 0
    request: int = 300_000
    close: int = 15_000


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """Addresses of brokers and options; without failover a broken connection stays broken.

    `user` and `password` are None where the URL does not name them.
    """

    addresses: tuple[Address, ...]
    failover: FailoverOptions | None = None
    user: str | None = None
    password: str | None = None
    timeouts: Timeouts = Timeouts()


def parse_url(text: str, tls: TlsOptions | None = None) -> BrokerUrl:
    """Return what a broker URL says; *tls* is for what it does not. Raises BrokerUrlError."""
    tls = tls or TlsOptions()
    try:
        if text.startswith("failover:"):
            return _parse_failover(text, tls)
        return _parse_single(text, tls)
    except BrokerUrlError as error:
        # What is wrong with a URL is told to people, and logged.
        raise BrokerUrlError(_SECRET.sub(r"\1***", str(error))) from error.__cause__


def _parse_single(text: str, tls: TlsOptions) -> BrokerUrl:
    options = _options(text.partition("?")[2], text)
    user, password = options.pop(USER, None), options.pop(PASSWORD, None)
    timeouts = _timeouts(options, text)
    return BrokerUrl((_parse_address(text, {}, options, tls),), None, user, password, timeouts)


def _parse_failover(text: str, tls: TlsOptions) -> BrokerUrl:
    rest = text.removeprefix("failover:").removeprefix("//")
    inner, closed, after = rest.removeprefix("(").rpartition(")")
    if not (rest.startswith("(") and closed) or (after and not after.startswith("?")):
        raise BrokerUrlError(f"{text!r} is not of the form failover:(uri,uri)?option=value")
    options = _options(after.removeprefix("?"), text)
    nested = {
        name.removeprefix(NESTED): options.pop(name)
        for name in list(options)
        if name.startswith(NESTED)
    }
    user, password = options.pop(USER, None), options.pop(PASSWORD, None)
    timeouts = _timeouts(options, text)
    parts = [part.strip() for part in inner.split(",")]
    addresses = tuple(
        _parse_address(part, nested, _options(part.partition("?")[2], part), tls) for part in parts
    )
    settings = _read(options, _FAILOVER_OPTIONS, text)
    failover = replace(FailoverOptions(), **settings)
    return BrokerUrl(addresses, failover, user, password, timeouts)


def _parse_address(
    text: str, nested: Mapping[str, str], own: Mapping[str, str], tls: TlsOptions
) -> Address:
    """Return one address with its *own* options, and those that hold for all, where they fit."""
    if not text.startswith(("tcp://", "ssl://")):
        raise BrokerUrlError(f"{text!r} does not begin with tcp://, ssl:// or failover:")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise BrokerUrlError(f"the host in {text!r}: {error}") from error
    is_encrypted = parts.scheme == "ssl"
    usual = DEFAULT_TLS_PORT if is_encrypted else DEFAULT_PORT
    try:
        port = usual if parts.port is None else parts.port
    except ValueError as error:
        raise BrokerUrlError(f"the port in {text!r} is not 0 to 65535") from error
    if not parts.hostname or parts.path not in ("", "/") or parts.username:
        raise BrokerUrlError(f"{text!r} is not of the form tcp://host:port?option=value")
    if not is_encrypted:
        nested = {name: value for name, value in nested.items() if name not in _TLS_OPTIONS}
        settings = _read({**nested, **own}, _TCP_OPTIONS, text)
        return Address(parts.hostname, port, replace(TcpOptions(), **settings))
    found = _read({**nested, **own}, _TCP_OPTIONS | _TLS_OPTIONS, text)
    of_tls = {field: found.pop(field) for field, _ in _TLS_OPTIONS.values() if field in found}
    return Address(parts.hostname, port, replace(TcpOptions(), **found), replace(tls, **of_tls))


def _timeouts(options: dict[str, str], text: str) -> Timeouts:
    """Take the options that begin with `jms.` out of *options*."""
    own = {name: options.pop(name) for name in _JMS_OPTIONS if name in options}
    return replace(Timeouts(), **_read(own, _JMS_OPTIONS, text))


def _options(query: str, text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise BrokerUrlError(f"the options of {text!r} are not name=value&name=value") from error


_Parser = Callable[[str], bool | int | float | Path]


def _read(
    options: Mapping[str, str], known: Mapping[str, tuple[str, _Parser]], text: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            raise BrokerUrlError(
                f"unknown option {name!r} in {text!r}; known are {', '.join(sorted(known))}"
            )
        field, parse = known[name]
        try:
            found[field] = parse(value)
        except ValueError as error:
            raise BrokerUrlError(f"option {name}={value} in {text!r}: {error}") from error
    return found


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return value.lower() == "true"


def _count(value: str) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("must be 0 or more")
    return number


def _limit(value: str) -> int:
    number = int(value)
    if number < UNLIMITED:
        raise ValueError("must be -1 (no limit) or more")
    return number


def _exponent(value: str) -> float:
    number = float(value)
    if not 1 <= number <= 1000:
        raise ValueError("must be 1 to 1000")
    return number


_TCP_OPTIONS: dict[str, tuple[str, _Parser]] = {
    "connectionTimeout": ("connection_timeout", _count),
    "tcpNoDelay": ("tcp_no_delay", _flag),
    "keepAlive": ("keep_alive", _flag),
    "wireFormat.maxInactivityDuration": ("inactivity_duration", _count),
    "wireFormat.maxInactivityDurationInitalDelay": ("inactivity_initial_delay", _count),
    "wireFormat.maxFrameSize": ("frame_bytes_max", _count),
}
_JMS_OPTIONS: dict[str, tuple[str, _Parser]] = {
    "jms.sendTimeout": ("send", _count),
    "jms.requestTimeout": ("request", _count),
    "jms.closeTimeout": ("close", _count),
}
_TLS_OPTIONS: dict[str, tuple[str, _Parser]] = {
    "socket.verifyHostName": ("verify_host_name", _flag),
    "ssl.caFile": ("ca_file", Path),
    "ssl.certificateFile": ("certificate_file", Path),
    "ssl.keyFile": ("key_file", Path),
}
_FAILOVER_OPTIONS: dict[str, tuple[str, _Parser]] = {
    "initialReconnectDelay": ("initial_reconnect_delay", _count),
    "maxReconnectDelay": ("max_reconnect_delay", _count),
    "useExponentialBackOff": ("use_exponential_back_off", _flag),
    "reconnectDelayExponent": ("reconnect_delay_exponent", _exponent),
    "maxReconnectAttempts": ("max_reconnect_attempts", _limit),
    "startupMaxReconnectAttempts": ("startup_max_reconnect_attempts", _limit),
    "randomize": ("randomize", _flag),
    "timeout": ("timeout", _limit),
}
