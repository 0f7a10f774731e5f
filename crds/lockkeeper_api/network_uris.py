"""URIs of network connectors: which brokers a broker dials, and how long it waits in between."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

_COMPOSITE = re.compile(r"([a-z]+):(?://)?\((.*)\)(?:\?([^()]*))?", re.DOTALL)
_ADDRESS = re.compile(
    r"(tcp|nio|ssl|nio\+ssl)://(\[[0-9a-fA-F:.]+\]|[^\s:/?#()\[\]]+):([0-9]{1,5})/?(?:\?(.*))?"
)
PORT_MAX = 65_535
DISCOVERIES = ("multicast", "ldap", "zeroconf", "rendezvous", "peer")
"""Ways of ActiveMQ to find brokers that are not named."""


@dataclass(frozen=True)
class PeerAddress:
    """Address of another broker; durations in ms."""

    host: str
    port: int
    is_encrypted: bool = False
    verify_host_name: bool = True
    connection_timeout: int = 30_000
    inactivity_duration: int = 30_000
    frame_bytes_max: int = 104_857_600

    def __str__(self) -> str:
        """Return the address as a URI, without options."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'ssl' if self.is_encrypted else 'tcp'}://{host}:{self.port}"


@dataclass(frozen=True)
class Target:
    """One bridge's end: the first of its addresses that answers; in any order if randomized."""

    addresses: tuple[PeerAddress, ...]
    is_randomized: bool = False


@dataclass(frozen=True)
class BackOff:
    """Delays between attempts, in ms: ActiveMQ's of its simple discovery agent."""

    initial_reconnect_delay: int = 1_000
    max_reconnect_delay: int = 30_000
    use_exponential_back_off: bool = True
    back_off_multiplier: float = 2.0
    min_connect_time: int = 5_000


@dataclass(frozen=True)
class NetworkUri:
    """Meaning of a network connector's URI: a bridge to each of *targets*."""

    targets: tuple[Target, ...]
    back_off: BackOff = field(default_factory=BackOff)


def read_network_uri(text: str) -> NetworkUri:
    """Return what *text* says: `static:(URI,…)`, `masterslave:(…)`, `failover:(…)` or one address.

    Raises ValueError with the way out.
    """
    text = text.strip()
    scheme = text.partition(":")[0]
    if scheme in DISCOVERIES:
        raise ValueError(f"{scheme} discovery is not supported: name the brokers by static:(…)")
    composite = _COMPOSITE.fullmatch(text)
    if composite is None:
        return NetworkUri((Target((_address(text),)),))
    scheme, inner, query = composite[1], composite[2], _query(composite[3], text)
    parts = _parts(inner)
    if not parts:
        raise ValueError(f"{text!r} names no broker")
    if scheme == "static":
        back_off = BackOff(**_options(query, _BACK_OFF, text))
        return NetworkUri(tuple(_target(part) for part in parts), back_off)
    if scheme == "masterslave":
        back_off = BackOff(**_options(query, _BACK_OFF, text))
        return NetworkUri((Target(tuple(map(_address, parts))),), back_off)
    if scheme == "failover":
        options = _options(query, _BACK_OFF | _FAILOVER, text)
        target = _failover(parts, options)
        return NetworkUri((target,), BackOff(**options))
    raise ValueError(_unknown("discovery", scheme, ("static", "masterslave", "failover")))


def _target(text: str) -> Target:
    composite = _COMPOSITE.fullmatch(text)
    if composite is None:
        return Target((_address(text),))
    scheme, inner, query = composite[1], composite[2], _query(composite[3], text)
    if scheme == "masterslave":
        _options(query, {}, text)
        return Target(tuple(map(_address, _parts(inner))))
    if scheme != "failover":
        raise ValueError(_unknown("scheme", scheme, ("failover", "masterslave")))
    options = _options(query, _FAILOVER, text)
    return _failover(_parts(inner), options)


def _failover(parts: list[str], options: dict[str, Any]) -> Target:
    is_randomized: bool = options.pop("is_randomized", True)
    options.pop("attempts", None)
    return Target(tuple(map(_address, parts)), is_randomized)


def _parts(inner: str) -> list[str]:
    """Return the URIs of a list, whose commas within parentheses are their own."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(inner + ","):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(inner[begin:at].strip())
            begin = at + 1
    return [part for part in parts if part]


def _address(text: str) -> PeerAddress:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[3]) <= PORT_MAX:
        raise ValueError(f"expected tcp://HOST:PORT or ssl://HOST:PORT, found {text!r}")
    options = _options(_query(match[4], text), _ADDRESS_OPTIONS, text)
    return PeerAddress(match[2].strip("[]"), int(match[3]), match[1].endswith("ssl"), **options)


def _query(query: str | None, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, (query or "").split("&")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"option {part!r} in {text!r} has no value")
        found[name] = value
    return found


_Known = Mapping[str, tuple[str, Callable[[str], Any]]]


def _options(query: Mapping[str, str], known: _Known, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in query.items():
        if name not in known:
            raise ValueError(f"{_unknown('option', name, tuple(known))}, in {text!r}")
        name_of_field, parse = known[name]
        try:
            found[name_of_field] = parse(value)
        except ValueError as error:
            raise ValueError(f"option {name}={value} in {text!r}: {error}") from None
    return found


def _unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known) or 'none'}"
    return f"unknown {what} {name!r}; {hint}"


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


def _count(text: str) -> int:
    if not text.isdigit():
        raise ValueError("expected a number of at least 0")
    return int(text)


def _one_attempt(text: str) -> int:
    if text not in ("0", "1"):
        raise ValueError("a bridge begins anew by itself: 0 or 1")
    return int(text)


_BACK_OFF: dict[str, tuple[str, Callable[[str], Any]]] = {
    "initialReconnectDelay": ("initial_reconnect_delay", _count),
    "maxReconnectDelay": ("max_reconnect_delay", _count),
    "useExponentialBackOff": ("use_exponential_back_off", _flag),
    "backOffMultiplier": ("back_off_multiplier", float),
    "minConnectTime": ("min_connect_time", _count),
}
_FAILOVER: dict[str, tuple[str, Callable[[str], Any]]] = {
    "randomize": ("is_randomized", _flag),
    "maxReconnectAttempts": ("attempts", _one_attempt),
    "startupMaxReconnectAttempts": ("attempts", _one_attempt),
}
_ADDRESS_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "connectionTimeout": ("connection_timeout", _count),
    "socket.verifyHostName": ("verify_host_name", _flag),
    "wireFormat.maxInactivityDuration": ("inactivity_duration", _count),
    "wireFormat.maxFrameSize": ("frame_bytes_max", _count),
}
