"""Events of a network: who has joined, who has left, and what waits there."""

from collections.abc import Iterator, Mapping
from typing import Any

from lockkeeper_operator.kubernetes.events import Event


def events_of(previous: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[Event]:
    """Yield what is told when the *previous* status gives way to another."""
    before, after = _members(previous), _members(status)
    for key in sorted(after.keys() - before.keys()):
        yield Event("Normal", "BrokerJoined", f"Broker {key} has joined the network")
    for key in sorted(before.keys() - after.keys()):
        yield _left(key, before[key].get("waiting", 0))


def _left(broker: str, waiting: int) -> Event:
    if not waiting:
        return Event("Normal", "BrokerLeft", f"Broker {broker} has left the network")
    message = (
        f"Broker {broker} has left the network with at least {waiting} messages in queues that "
        "its bridges forwarded; they wait there: consume them, or let it join again"
    )
    return Event("Warning", "MessagesLeftBehind", message)


def _members(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    members = status.get("members", ())
    return {f"{each['namespace']}/{each['name']}": each for each in members}
