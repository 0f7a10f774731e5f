"""Limits that keep a message out of a destination: pure functions of the core's state."""

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from lockkeeper.store.base import StoreFullError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lockkeeper.broker.context import Context
    from lockkeeper.broker.routing.rule import Region
    from lockkeeper.message.destination import Destination
    from lockkeeper.store.base import Store

# So much of a destination with consumers finds room however full the memory is.
MINIMUM_WINDOW_BYTES: Final = 1 << 16
# Persistent messages may pass through the memory on their way to the journal when it is full, but
# only so much: more than dispatch may have (see `Context.has_room`), so that a consumer that sends
# before it acknowledges is not kept from that by what it holds.
PASSING_BYTES_MAX: Final = 24 << 20


class Limit(Enum):
    """A limit that can be used up, by its name in the resources."""

    MEMORY_USAGE = "systemUsage.memoryUsage"
    MEMORY_LIMIT = "memoryLimit"
    STORE_USAGE = "systemUsage.storeUsage"
    TEMP_USAGE = "systemUsage.tempUsage"


class Holder(NamedTuple):
    """A destination and the bytes of message bodies that it has in memory."""

    destination: "Destination"
    memory_bytes: int


def lack_of_room(context: "Context", region: "Region", is_persistent: bool) -> Limit | None:
    """Return which limit keeps a message out of *region* now; None: there is room."""
    if not region.keeps_messages():
        return None
    if is_persistent:
        return _lack_for_persistent(context, region)
    flow, memory = region.policy.flow, context.memory
    if memory.used >= memory.limit and not has_window(region):
        if flow.spool_non_persistent and context.store.is_spool_full():
            return Limit.TEMP_USAGE
        if flow.producer_flow_control or not flow.spool_non_persistent:
            return Limit.MEMORY_USAGE
    if flow.producer_flow_control and region.memory_full():
        return Limit.MEMORY_LIMIT
    return None


def _lack_for_persistent(context: "Context", region: "Region") -> Limit | None:
    if region.keeps_on_disk() and _is_store_full(context):
        return Limit.STORE_USAGE
    memory = context.memory
    if memory.used < memory.limit + PASSING_BYTES_MAX or has_window(region):
        return None
    return Limit.MEMORY_USAGE if region.policy.flow.producer_flow_control else None


def described(store: "Store", limit: Limit) -> str:
    """Return in words that *limit* is used up."""
    if limit is Limit.STORE_USAGE:
        try:
            store.check_full()
        except StoreFullError as error:
            return str(error)
    return f"{limit.value} is used up; consume messages, or raise the limit"


def has_window(region: "Region") -> bool:
    """Tell whether *region* may have a message in memory however full that is."""
    return region.is_read() and region.memory_used() < MINIMUM_WINDOW_BYTES


def holders(regions: "Iterable[Region]", most: int = 5) -> list[Holder]:
    """Return the destinations that have most in memory, those with the most first."""
    found = [Holder(each.destination, each.memory_used()) for each in regions]
    found.sort(key=lambda holder: holder.memory_bytes, reverse=True)
    return [holder for holder in found[:most] if holder.memory_bytes]


def _is_store_full(context: "Context") -> bool:
    try:
        context.store.check_full()
    except StoreFullError:
        return True
    return False
