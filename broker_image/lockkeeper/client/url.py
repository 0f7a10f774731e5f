"""Broker URLs: `tcp://host:port?option=…`, `ssl://…` and `failover:(uri,uri)?option=…`.

Options have ActiveMQ's names and defaults; times are in ms, as there. An unknown option is an
error that names the nearest. Options of a failover URL that begin with `nested.` hold for each
address in it. Files of certificates, which Java has in key stores, are options that begin with
`ssl.`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlsplit

from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.core.redelivery import RedeliveryPolicy
from lockkeeper.client.errors import BrokerUrlError
from lockkeeper.client.tls import TlsOptions
from lockkeeper.client.url_options import (
    FAILOVER_OPTIONS,
    TCP_OPTIONS,
    TLS_OPTIONS,
    UNLIMITED,
    FailoverOptions,
    TcpOptions,
    read_jms_options,
    read_options,
)

__all__ = [
    "UNLIMITED", "Address", "BrokerUrl", "FailoverOptions", "TcpOptions", "parse_others",
    "parse_url",
]  # fmt: skip

DEFAULT_PORT = 61616
DEFAULT_TLS_PORT = 61617
NESTED = "nested."
USER, PASSWORD, CLIENT_ID = "jms.userName", "jms.password", "jms.clientID"
JMS = "jms."
_SECRET = re.compile(rf"({re.escape(PASSWORD)}=|uploadUrl=https?(?:://|%3A%2F%2F))[^&)'\"]*")


@dataclass(frozen=True, slots=True)
class Address:
    """One broker; encrypted with `tls` options, even if they are the defaults."""

    host: str
    port: int
    options: TcpOptions = field(default_factory=TcpOptions)
    tls: TlsOptions | None = None

    def __str__(self) -> str:
        """Return the URL without its options."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "tcp" if self.tls is None else "ssl"
        return f"{scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """Addresses of brokers and options; without failover a broken connection stays broken.

    `priority` are those addresses that are better than the others. `user`, `password` and
    `client_id` are None where the URL does not name them.
    """

    addresses: tuple[Address, ...]
    priority: tuple[Address, ...] = ()
    failover: FailoverOptions | None = None
    user: str | None = None
    password: str | None = None
    client_id: str | None = None
    options: ConnectionOptions = field(default_factory=ConnectionOptions)
    redelivery: RedeliveryPolicy = field(default_factory=RedeliveryPolicy)


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


def parse_others(texts: tuple[str, ...], url: BrokerUrl) -> tuple[Address, ...]:
    """Return addresses that a broker tells of, with the options of the URL's first one.

    Those that cannot be understood, or are of another scheme, are passed over.
    """
    first = url.addresses[0]
    found = []
    for text in texts:
        try:
            (address,) = parse_url(text.partition("?")[0]).addresses
        except (BrokerUrlError, ValueError):
            continue
        if (address.tls is None) == (first.tls is None):
            found.append(replace(address, options=first.options, tls=first.tls))
    return tuple(found)


def _parse_single(text: str, tls: TlsOptions) -> BrokerUrl:
    options = _options(text.partition("?")[2], text)
    found = _with_jms(BrokerUrl(()), options, text)
    return replace(found, addresses=(_parse_address(text, {}, options, tls),))


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
    found = _with_jms(BrokerUrl(()), options, text)
    parts = [part.strip() for part in inner.split(",")]
    addresses = tuple(
        _parse_address(part, nested, _options(part.partition("?")[2], part), tls) for part in parts
    )
    failover = replace(FailoverOptions(), **read_options(options, FAILOVER_OPTIONS, text))
    if failover.timeout > 0:
        timeouts = replace(found.options.timeouts, no_broker=failover.timeout / 1000)
        found = replace(found, options=replace(found.options, timeouts=timeouts))
    if not failover.priority_backup:
        return replace(found, addresses=addresses, failover=failover)
    asked = [_parse_address(uri, nested, {}, tls) for uri in failover.priority_uris]
    known = {str(address): address for address in addresses}
    priority = tuple(known.setdefault(str(each), each) for each in asked) or addresses[:1]
    return replace(found, addresses=tuple(known.values()), priority=priority, failover=failover)


def _with_jms(url: BrokerUrl, options: dict[str, str], text: str) -> BrokerUrl:
    """Take the options that begin with `jms.` out of *options*, and return a URL with them."""
    jms = {name: options.pop(name) for name in list(options) if name.startswith(JMS)}
    user, password = jms.pop(USER, None), jms.pop(PASSWORD, None)
    client_id = jms.pop(CLIENT_ID, None)
    settings, redelivery = read_jms_options(jms, text)
    return replace(
        url,
        user=user,
        password=password,
        client_id=client_id,
        options=settings,
        redelivery=redelivery,
    )


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
        nested = {name: value for name, value in nested.items() if name not in TLS_OPTIONS}
        settings = read_options({**nested, **own}, TCP_OPTIONS, text)
        return Address(parts.hostname, port, replace(TcpOptions(), **settings))
    found = read_options({**nested, **own}, {**TCP_OPTIONS, **TLS_OPTIONS}, text)
    of_tls = {field: found.pop(field) for field, _ in TLS_OPTIONS.values() if field in found}
    return Address(parts.hostname, port, replace(TcpOptions(), **found), replace(tls, **of_tls))


def _options(query: str, text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise BrokerUrlError(f"the options of {text!r} are not name=value&name=value") from error
