"""Diagnostics of a queue: the reasons why it keeps its messages, or one of them."""

from typing import TYPE_CHECKING

from lockkeeper.broker.context import DELIVERY_BITS
from lockkeeper.broker.diagnostics.allowance import Allowance
from lockkeeper.broker.diagnostics.consumers import why_no_room
from lockkeeper.broker.diagnostics.elsewhere import why_elsewhere, why_not_sent
from lockkeeper.broker.diagnostics.jobs import why_job
from lockkeeper.broker.diagnostics.reason import Reason, counted, facts_of, name_of
from lockkeeper.broker.diagnostics.transactions import why_in_transaction
from lockkeeper.broker.regions.sub_queues import GROUP_BEGINS
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.broker.subscriptions.network import NetworkRoute, may_pass
from lockkeeper.message.broker_path import broker_path

if TYPE_CHECKING:
    from lockkeeper.broker.core import Broker
    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.message import Message
    from lockkeeper.store.base import Reference


def why_queue(queue: "Queue") -> list[Reason]:
    """Return why what waits in a queue is not delivered; empty when nothing waits.

    That is about its first message; others may have other reasons, see `why_message`.
    """
    first = queue.first()
    return [] if first is None else why_waiting(queue, first)


def why_waiting(queue: "Queue", reference: "Reference") -> list[Reason]:
    """Return why a message that waits is not delivered; never empty."""
    if isinstance(queue, JobQueue):
        return [why_job(queue, reference)]
    shut = _why_shut(queue) or _why_resting(queue)
    if shut is not None:
        return [shut]
    if not queue.consumers:
        return [Reason("no-consumer", "the queue has no consumer", "start one", {})]
    message = queue.peek(reference)
    if message is None:
        return [Reason("gone", "it was consumed just now", "none is needed", {})]
    if queue.is_expired(message):
        return [_why_expired(queue, message)]
    reasons = [_why_not_to(queue, consumer, message) for consumer in queue.consumers]
    if None in reasons:
        return [_why_later(queue, reference, message)]
    return [reason for reason in reasons if reason is not None]


def _why_expired(queue: "Queue", message: "Message") -> Reason:
    period = queue.policy.expiry.expire_messages_period
    return Reason(
        "expired",
        "its time is over; it ends when it is next in turn, or is found so",
        f"expireMessagesPeriod, {period:,} ms, says how often that is looked for",
        {"expiration": message.expiration},
    )


def _why_later(queue: "Queue", reference: "Reference", message: "Message") -> Reason:
    """Return why a message is not delivered that somebody has room for."""
    ahead = None if queue.sub_queues is None else queue.sub_queues.ahead(reference, message)
    if ahead is None:
        return Reason("next", "it is about to be delivered", "none is needed", {})
    return Reason(
        "group-order",
        "another message of its group comes before it, and cannot be delivered",
        "the group's owner has to want it, close the group, or leave",
        {"group": (message.group or b"").decode(errors="replace")},
    )


def why_message(broker: "Broker", queue: "Queue", message_id: str) -> list[Reason]:
    """Return where a message of a queue is, and why it is not delivered; never empty.

    One that has still to come there is known, too.
    A scheduled message is known by the id of its job, or by its own, which are kept: there may be
    very many to look through.
    """
    key = message_id.encode()
    found = _held(queue, key) or why_in_transaction(broker, queue, message_id)
    if found is not None:
        return [found]
    if isinstance(queue, JobQueue):
        jobs = queue.named(message_id) or queue.shown_as(message_id)
        if jobs:
            return why_waiting(queue, jobs[0])
        return why_not_sent(broker, message_id) or [_not_there(message_id)]
    allowance = Allowance()
    for position, reference in enumerate(queue.waiting()):
        message = allowance.peek(queue, reference)
        if message is not None and message.identifier == key:
            ahead = Reason(
                "waiting",
                f"it waits behind {counted(position, 'message')}",
                "they come first, unless nobody wants them",
                {"ahead": position},
            )
            return [ahead, *why_waiting(queue, reference)]
    return why_elsewhere(broker, queue.destination, message_id) or [_unknown(queue, message_id)]


def _why_shut(queue: "Queue") -> Reason | None:
    gate = queue.gate
    if gate.is_open:
        return None
    if gate.paused_since is not None:
        return Reason("paused", "the queue is paused", "resume it", {"since": gate.paused_since})
    wanted = queue.policy.dispatch.consumers_before_dispatch_starts
    return Reason(
        "not-started",
        f"dispatch waits for {wanted:,} consumers; there are {len(queue.consumers):,}",
        "more consumers, or time: consumersBeforeDispatchStarts, timeBeforeDispatchStarts",
        {"startsAt": gate.starts_at, "consumers": len(queue.consumers), "wanted": wanted},
    )


def _why_resting(queue: "Queue") -> Reason | None:
    """Return what failed, while dispatch waits to be tried again."""
    records = queue.context.containment.of(queue.destination)
    if not records or not queue.context.resting(queue):
        return None
    record = records[-1]
    return Reason(
        "set-aside",
        f"its dispatch failed and is tried again later; so far {record.count:,} times, "
        f"last with {record.error}",
        "it is a defect of the broker: the log has the first error with where it came from",
        {"error": record.error, "count": record.count, "since": record.first},
    )


def _why_not_to(queue: "Queue", consumer: "Consumer", message: "Message") -> Reason | None:
    """Return why a consumer does not get a message, None when it may."""
    exclusive = queue.order.exclusive
    if exclusive is not None and exclusive is not consumer:
        return Reason(
            "exclusive",
            f"{name_of(exclusive)} has the queue for itself, not {name_of(consumer)}",
            "it must leave, or not be exclusive",
            {**facts_of(consumer), "exclusive": str(exclusive.identifier)},
        )
    route = consumer.request.network
    if route is not None and not consumer.accepts(message):
        return _why_not_over(queue, consumer, route, message)
    if not consumer.accepts(message):
        selector = consumer.request.selector
        own = "" if selector is None else f" by its selector, {selector}"
        return Reason(
            "selector",
            f"{name_of(consumer)} does not want it{own or ': it is its own, and it is noLocal'}",
            "another selector, or another consumer",
            {**facts_of(consumer), "selector": selector},
        )
    owner = _owner(queue, message)
    if owner is not None and owner is not consumer:
        return Reason(
            "message-group",
            f"{name_of(owner)} owns the message's group, not {name_of(consumer)}",
            "its owner must take it, close the group, or leave",
            {**facts_of(consumer), "owner": str(owner.identifier)},
        )
    return why_no_room(consumer) or _why_limited(queue, consumer)


def _why_limited(queue: "Queue", consumer: "Consumer") -> Reason | None:
    """Return why a bridge forwards no more for a while, None when it does."""
    if queue.bridged is None or not queue.bridged.is_spent(consumer):
        return None
    policy = queue.policy.network_bridge_filter
    return Reason(
        "rate-limit",
        f"{name_of(consumer)} has been sent {counted(policy.rate_limit, 'message')} in "
        f"{policy.rate_duration:,} ms, and may get no more",
        "it goes on by itself; or raise networkBridgeFilter.rateLimit",
        {**facts_of(consumer), "rateLimit": policy.rate_limit},
    )


def _why_not_over(
    queue: "Queue", consumer: "Consumer", route: NetworkRoute, message: "Message"
) -> Reason | None:
    """Return why a bridge's consumer does not get a message, None when it may go back by it."""
    bridge, facts = f"the bridge to {route.broker}", {**facts_of(consumer), "broker": route.broker}
    path = broker_path(message.body)
    if may_pass(route, path):
        return Reason(
            "selector",
            f"{bridge} serves nobody there whose selector wants it",
            "another selector, or another consumer",
            facts,
        )
    if route.broker not in path:
        return Reason(
            "network-ttl",
            f"it has left {counted(len({*path}), 'broker')}, and {bridge} forwards none that has "
            f"left {route.message_ttl:,}",
            "raise messageTTL or networkTTL of the network connector",
            {**facts, "brokerPath": list(path)},
        )
    policy = queue.policy.network_bridge_filter
    if not policy.replay_when_no_consumers:
        return Reason(
            "stranded",
            f"it has come from {route.broker}, and {bridge} sends nothing back",
            "start a consumer here, or set networkBridgeFilter.replayWhenNoConsumers",
            {**facts, "brokerPath": list(path)},
        )
    if queue.bridged is not None and queue.bridged.is_way_back(consumer, message):
        return why_no_room(consumer)
    return Reason(
        "stranded",
        f"it has come from {route.broker}, and does not go back by {bridge} now: a consumer here "
        f"keeps it, another way is shorter, or it is not here for {policy.replay_delay:,} ms yet",
        "it waits for the end of replayDelay, or for a consumer here that wants it",
        {**facts, "brokerPath": list(path), "replayDelay": policy.replay_delay},
    )


def _owner(queue: "Queue", message: "Message") -> "Consumer | None":
    group, owners = message.group, queue.groups
    if group is None or owners is None or message.group_sequence == GROUP_BEGINS:
        return None
    return owners.owner(owners.key(group))


def _held(queue: "Queue", key: bytes) -> Reason | None:
    for consumer in queue.consumers:
        for each in consumer.dispatched.values():
            if each.loaded.identifier == key:
                return Reason(
                    "held",
                    f"{name_of(consumer)} has it, and has not acknowledged it",
                    "it has to acknowledge it, or leave; then somebody else gets it",
                    {**facts_of(consumer), "since": each.delivery >> DELIVERY_BITS},
                )
    return None


def _unknown(queue: "Queue", message_id: str) -> Reason:
    on_disk = queue.depth() - sum(each.message is not None for each in queue.loose())
    if on_disk:
        return Reason(
            "not-in-memory",
            f"{message_id} is not in memory; {on_disk:,} messages wait that are only on disk",
            "ask again when those before it are gone, or look with `lockkeeper browse`",
            {"onDisk": on_disk},
        )
    return _not_there(message_id)


def _not_there(message_id: str) -> Reason:
    return Reason(
        "not-there",
        f"the queue has no message {message_id}",
        "it was consumed, or never came: `lockkeeper journal dump` tells",
        {},
    )
