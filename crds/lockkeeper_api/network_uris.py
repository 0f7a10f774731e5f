"""URIs of network connectors: which brokers a broker dials, and how long it waits in between."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lockkeeper_api.multicast_uris import PORT_MAX, MulticastGroup, read_multicast_uri
from lockkeeper_api.uri_options import count, flag, read_options, read_query, unknown

_COMPOSITE = re.compile(r"([a-z]+):(?://)?\((.*)\)(?:\?([^()]*))?", re.DOTALL)
_ADDRESS = re.compile(
    r"(tcp|nio|ssl|nio\+ssl)://(\[[0-9a-fA-F:.]+\]|[^\s:/?#()\[\]]+):([0-9]{1,5})/?(?:\?(.*))?"
)
DISCOVERIES = ("ldap", "zeroconf", "rendezvous", "peer")
"""Ways of ActiveMQ to find brokers that are not named, which are not there."""
MULTICAST = "multicast"
MULTIPLIER_MAX = 1000


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
    """Meaning of a network connector's URI: a bridge to each of *targets*, or to those who tell of
    themselves in a group.
    """

    targets: tuple[Target, ...] = ()
    back_off: BackOff = field(default_factory=BackOff)
    multicast: MulticastGroup | None = None


def read_network_uri(text: str) -> NetworkUri:
    """Return what *text* says: `static:(URI,…)`, `masterslave:(…)`, `failover:(…)`, one address, or
    `multicast://default`.

    Raises ValueError with the way out.
    """
    text = text.strip()
    scheme = text.partition(":")[0]
    if scheme == MULTICAST:
        group, delays = read_multicast_uri(text, _BACK_OFF)
        return NetworkUri((), BackOff(**_MULTICAST_DELAYS | delays), group)
    if scheme in DISCOVERIES:
        raise ValueError(f"{scheme} discovery is not supported: name the brokers by static:(…)")
    composite = _COMPOSITE.fullmatch(text)
    if composite is None:
        return NetworkUri((Target((_address(text),)),))
    scheme, inner, query = composite[1], composite[2], read_query(composite[3], text)
    parts = _parts(inner)
    if not parts:
        raise ValueError(f"{text!r} names no broker")
    if scheme == "static":
        back_off = BackOff(**read_options(query, _BACK_OFF, text))
        return NetworkUri(tuple(_target(part) for part in parts), back_off)
    if scheme == "masterslave":
        back_off = BackOff(**read_options(query, _BACK_OFF, text))
        return NetworkUri((Target(tuple(map(_address, parts))),), back_off)
    if scheme == "failover":
        options = read_options(query, _BACK_OFF | _FAILOVER, text)
        target = _failover(parts, options)
        return NetworkUri((target,), BackOff(**options))
    raise ValueError(unknown("discovery", scheme, ("static", "masterslave", "failover", MULTICAST)))


def read_found_address(text: str) -> PeerAddress:
    """Return the address of a broker that told of itself. Raises ValueError.

    Its options are those of its own side.
    """
    return _address(text.partition("?")[0])


def _target(text: str) -> Target:
    composite = _COMPOSITE.fullmatch(text)
    if composite is None:
        return Target((_address(text),))
    scheme, inner, query = composite[1], composite[2], read_query(composite[3], text)
    if scheme == "masterslave":
        read_options(query, {}, text)
        return Target(tuple(map(_address, _parts(inner))))
    if scheme != "failover":
        raise ValueError(unknown("scheme", scheme, ("failover", "masterslave")))
    options = read_options(query, _FAILOVER, text)
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
    try:
        match[2].encode("idna")
    except UnicodeError as error:
        raise ValueError(f"{match[2]!r} is no host name: {error}") from None
    options = read_options(read_query(match[4], text), _ADDRESS_OPTIONS, text)
    return PeerAddress(match[2].strip("[]"), int(match[3]), match[1].endswith("ssl"), **options)


def _multiplier(text: str) -> float:
    number = float(text)
    if not 1 <= number <= MULTIPLIER_MAX:
        raise ValueError(f"expected 1 to {MULTIPLIER_MAX}")
    return number


def _one_attempt(text: str) -> int:
    if text not in ("0", "1"):
        raise ValueError("a bridge begins anew by itself: 0 or 1")
    return int(text)


_BACK_OFF: dict[str, tuple[str, Callable[[str], Any]]] = {
    "initialReconnectDelay": ("initial_reconnect_delay", count),
    "maxReconnectDelay": ("max_reconnect_delay", count),
    "useExponentialBackOff": ("use_exponential_back_off", flag),
    "backOffMultiplier": ("back_off_multiplier", _multiplier),
    "minConnectTime": ("min_connect_time", count),
}
# ActiveMQ's of its multicast discovery agent.
_MULTICAST_DELAYS = {"initial_reconnect_delay": 5_000, "use_exponential_back_off": False}
_FAILOVER: dict[str, tuple[str, Callable[[str], Any]]] = {
    "randomize": ("is_randomized", flag),
    "maxReconnectAttempts": ("attempts", _one_attempt),
    "startupMaxReconnectAttempts": ("attempts", _one_attempt),
}
_ADDRESS_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "connectionTimeout": ("connection_timeout", count),
    "socket.verifyHostName": ("verify_host_name", flag),
    "wireFormat.maxInactivityDuration": ("inactivity_duration", count),
    "wireFormat.maxFrameSize": ("frame_bytes_max", count),
}
