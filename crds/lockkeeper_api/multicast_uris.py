"""Multicast groups, in which brokers tell of themselves and find each other, as ActiveMQ's do."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from lockkeeper_api.uri_options import Known, count, read_options, read_query

_URI = re.compile(r"multicast:(?://)?([^\s:/?#]+)(?::([0-9]{1,5}))?/?(?:\?(.*))?")
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,63}")
_INTERFACE = re.compile(r"[^\s/]{1,15}")
DEFAULT = "default"
PORT_MAX = 65_535
KEEP_ALIVE_MS_MIN, KEEP_ALIVE_MS_MAX = 50, 60_000
HOPS_MAX = 255


@dataclass(frozen=True)
class MulticastGroup:
    """Group in which brokers tell of themselves, with ActiveMQ's defaults; intervals in ms.

    Brokers of different `group` names pass over each other. `network_interface` is where one's own
    datagrams leave, `join_network_interface` where those of others come; empty: as routes say.
    """

    host: str = "239.255.2.3"
    port: int = 6155
    group: str = DEFAULT
    keep_alive_interval: int = 500
    time_to_live: int = 1
    network_interface: str = ""
    join_network_interface: str = ""


def read_multicast_uri(
    text: str, more: Known | None = None
) -> tuple[MulticastGroup, dict[str, Any]]:
    """Return what `multicast://default` or `multicast://ADDRESS:PORT` says, and *more* options.

    Raises ValueError with the way out.
    """
    match = _URI.fullmatch(text)
    if match is None or not _is_group(match[1], match[2]):
        raise ValueError(
            "expected multicast://default, or multicast://ADDRESS:PORT with an IPv4 multicast "
            f"address, found {text!r}"
        )
    others = more or {}
    options = read_options(read_query(match[3], text), {**_OPTIONS, **others}, text)
    rest = {name: options.pop(name) for name, _ in others.values() if name in options}
    if match[1] != DEFAULT:
        options["host"] = match[1]
    if match[2] is not None:
        options["port"] = int(match[2])
    return MulticastGroup(**options), rest


def checked_discovery_uri(text: str | None) -> str | None:
    """Return *text*, if it names a group. Raises ValueError with the way out."""
    if text is not None:
        read_multicast_uri(text)
    return text


def _is_group(host: str, port: str | None) -> bool:
    if port is not None and not 0 < int(port) <= PORT_MAX:
        return False
    try:
        return host == DEFAULT or IPv4Address(host).is_multicast
    except AddressValueError:
        return False


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError("expected at most 63 letters, digits, dots, hyphens and underscores")
    return text


def _interface(text: str) -> str:
    if _INTERFACE.fullmatch(text) is None:
        raise ValueError("expected the name of a network interface, like eth0")
    return text


def _interval(text: str) -> int:
    if not KEEP_ALIVE_MS_MIN <= count(text) <= KEEP_ALIVE_MS_MAX:
        raise ValueError(f"expected {KEEP_ALIVE_MS_MIN} to {KEEP_ALIVE_MS_MAX} ms")
    return int(text)


def _hops(text: str) -> int:
    if count(text) > HOPS_MAX:
        raise ValueError(f"expected at most {HOPS_MAX}")
    return int(text)


_OPTIONS: Known = {
    "group": ("group", _name),
    "keepAliveInterval": ("keep_alive_interval", _interval),
    "timeToLive": ("time_to_live", _hops),
    "networkInterface": ("network_interface", _interface),
    "joinNetworkInterface": ("join_network_interface", _interface),
}
