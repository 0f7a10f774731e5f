"""Diagnostics of producers that wait: the limit that is used up, by whom, since when."""

from typing import TYPE_CHECKING

from lockkeeper.broker.diagnostics.reason import Reason, counted, facts_of_connection
from lockkeeper.broker.flow.space import Limit, holders

if TYPE_CHECKING:
    from lockkeeper.broker.core import Broker
    from lockkeeper.broker.flow.control import Blocked

MEMORY_WAY_OUT = "consume them, or raise {}"
DISK_WAY_OUT = "free some: `lockkeeper why file` tells what keeps each file; or raise {}"
WAYS_OUT = {
    Limit.MEMORY_USAGE: MEMORY_WAY_OUT,
    Limit.MEMORY_LIMIT: MEMORY_WAY_OUT,
    Limit.TEMP_USAGE: MEMORY_WAY_OUT,
    Limit.STORE_USAGE: DISK_WAY_OUT,
}


def why_producers(broker: "Broker", name: str = "") -> list[Reason]:
    """Return why producers wait, a reason for each destination; empty when none does.

    *name* is a destination, or the id or client id of a connection; without one: all.
    """
    return [why_blocked(broker, each) for each in broker.flow.blocked() if _is_about(each, name)]


def _is_about(blocked: "Blocked", name: str) -> bool:
    names = {"", blocked.destination.name, str(blocked.destination)}
    for connection in blocked.connections:
        names |= {connection.identifier, connection.client_id}
    return name in names


def why_blocked(broker: "Broker", blocked: "Blocked") -> Reason:
    """Return what messages for a destination wait for."""
    kind = "persistent" if blocked.is_persistent else "non-persistent"
    top = [] if blocked.limit is Limit.STORE_USAGE else holders(broker.registry)
    held = ", ".join(f"{each.destination} {each.memory_bytes:,} bytes" for each in top)
    return Reason(
        "no-room",
        f"{blocked.destination} has no room for {counted(blocked.sends, f'{kind} message')}: "
        f"{blocked.limit.value} is used up{f' ({held})' if held else ''}",
        WAYS_OUT[blocked.limit].format(blocked.limit.value),
        {
            "destination": str(blocked.destination),
            "limit": blocked.limit.value,
            "since": blocked.since,
            "messages": blocked.sends,
            "bytes": blocked.bytes,
            "holders": [
                {"destination": str(each.destination), "bytes": each.memory_bytes} for each in top
            ],
            "producers": [facts_of_connection(each) for each in blocked.connections],
        },
    )
