"""Routes: which brokers have a stream, and which partitions of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from lockkeeper.protocols.rocketmq.bodies import QUEUES_MAX, read_object
from lockkeeper.protocols.rocketmq.errors import ProtocolError

READABLE, WRITABLE = 4, 2
MASTER: Final = "0"


class Partition(NamedTuple):
    """A partition of a stream; they sort as RocketMQ's clients sort them."""

    stream: str
    broker: str
    number: int

    def __str__(self) -> str:
        """Return it as people read it."""
        return f"{self.stream}/{self.broker}/{self.number}"


@dataclass(frozen=True, slots=True)
class Route:
    """Way to a stream: addresses by the names of brokers, and partitions in order."""

    stream: str
    addresses: Mapping[str, str]
    readable: tuple[Partition, ...]
    writable: tuple[Partition, ...]


def read_route(stream: str, body: bytes) -> Route:
    """Return the route that a name server tells. Raises ProtocolError."""
    told = read_object(body)
    masters: dict[str, str] = {}
    addresses: dict[str, str] = {}
    for data in _objects(told, "brokerDatas"):
        name, there = data.get("brokerName"), data.get("brokerAddrs")
        if not isinstance(name, str) or not isinstance(there, dict):
            raise ProtocolError("a route with a broker without name or addresses")
        known = {number: each for number, each in there.items() if isinstance(each, str)}
        if MASTER in known:
            masters[name] = known[MASTER]
        if known:
            addresses[name] = known.get(MASTER) or known[min(known)]
    readable: list[Partition] = []
    writable: list[Partition] = []
    for queues in _objects(told, "queueDatas"):
        broker, rights = queues.get("brokerName"), _whole(queues, "perm")
        if not isinstance(broker, str):
            raise ProtocolError("a route with partitions without a broker")
        to_read, to_write = _whole(queues, "readQueueNums"), _whole(queues, "writeQueueNums")
        if rights & READABLE and broker in addresses:
            readable += _partitions(stream, broker, to_read)
        if rights & WRITABLE and broker in masters:
            writable += _partitions(stream, broker, to_write)
    return Route(stream, addresses, tuple(sorted(readable)), tuple(sorted(writable)))


def of_new(stream: str, template: Route, count: int) -> Route:
    """Return the route of a stream that is yet to be made, with *count* partitions at most."""
    writable = tuple(
        Partition(stream, broker, number)
        for _, broker, number in template.writable
        if number < count
    )
    return Route(stream, template.addresses, writable, writable)


def _partitions(stream: str, broker: str, count: int) -> list[Partition]:
    return [Partition(stream, broker, number) for number in range(count)]


def _objects(told: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = told.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ProtocolError(f"a route whose {name} is no list of objects")
    return value


def _whole(told: dict[str, Any], name: str) -> int:
    value = told.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= QUEUES_MAX:
        raise ProtocolError(f"a route whose {name} is no number from 0 to {QUEUES_MAX}")
    return value
