"""The demand of one bridge: what the other broker says of its consumers becomes consumers here.

With conduit subscriptions one consumer of ours stands for all of theirs that it serves.
"""

import itertools
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.connections import Connection, NetworkPeer
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.subscription_manager import DELIVERED_NOTHING
from lockkeeper.broker.subscriptions.network import NetworkRoute
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.broker_path import names_of
from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import (
    BrokerId,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    DestinationOperation,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Structure,
)
from lockkeeper.network.demand import Demand, Subscriber, ids_of
from lockkeeper.network.demands import Demands
from lockkeeper.network.durable_sync import (
    DURABLE_PREFIX,
    is_of_this_bridge,
    is_synchronized,
)
from lockkeeper.network.inclusion import first_fit, is_forced_durable, is_permitted
from lockkeeper.network.membership import Bridges, Demanding
from lockkeeper.network.settings import UNLIMITED, BridgeSettings

AGAIN_MS = 1_000
# Apart from what the peer calls its own consumers: they may share the connection.
_SESSION = 2


class DemandBook:
    """Demand of the *peer*, as consumers of *connection*.

    `refused` are destinations that could not be consumed from, and why.
    """

    def __init__(
        self,
        broker: Broker,
        bridges: Bridges,
        connection: Connection,
        peer: NetworkPeer,
        settings: BridgeSettings,
    ) -> None:
        self.demands = Demands()
        self._broker = broker
        self._bridges = bridges
        self._connection = connection
        self._peer = peer
        self._settings = settings
        self._numbers = itertools.count(1)
        self._composites: dict[ConsumerId, list[ConsumerId]] = {}
        self._suppressed: dict[ConsumerId, list[ConsumerInfo]] = {}
        self._lists: dict[Subscriber, set[Subscriber]] = {}
        self.refused: dict[str, str] = {}
        self._is_draining = False
        bridges.join(self)

    def begin(self) -> None:
        """Ask for what is always forwarded, and for what was asked for before."""
        for included in self._settings.statically_included:
            if is_permitted(self._settings, included.destination):
                self._add_static(included.destination, None)
        if self._settings.dynamic_only or not self._settings.conduit_subscriptions:
            return
        for group in list(self._broker.subscriptions.durables.values()):
            own = group.subscription
            if own.client_id != self._connection.client_id:
                continue
            for destination in own.destination.parts():
                is_ours = own.name == self._durable_name(destination)
                if is_ours and not self.demands.serving(destination):
                    self._go_on_with(destination, own.name)

    def _go_on_with(self, destination: Destination, name: str) -> None:
        """Collect for a subscription of before, unless the bridge is no more for its topic."""
        if is_permitted(self._settings, destination):
            self._add_static(destination, name)
        elif self._settings.sync_durable_subs:
            self._forget_durable(name)

    def synchronize(self, infos: Iterable[ConsumerInfo]) -> None:
        """Take all durable subscriptions of the peer, and collect for no others any more."""
        settings = self._settings
        is_wanted = settings.sync_durable_subs and settings.conduit_subscriptions
        if not is_wanted or settings.dynamic_only:
            return
        for info in infos:
            destination = info.destination
            if destination is None or is_of_this_bridge(settings, info):
                continue
            if is_synchronized(settings, destination):
                self._hear_of_consumer(info)
        for demand in list(self.demands):
            destination = demand.destination
            if demand.subscription_name is None or not is_synchronized(settings, destination):
                continue
            # What was gone on with is needed by those alone who were told of.
            demand.is_static = first_fit(settings.statically_included, destination) is not None
            if not demand.is_needed():
                self._drop(demand)

    def end(self) -> None:
        """Let go of everything; the core ends the consumers with their connection."""
        self._bridges.leave(self)
        self.demands = Demands()

    def drain(self) -> None:
        """Ask for no more messages, whatever the peer says; durable subscriptions stay."""
        self._is_draining = True
        self._bridges.leave(self)
        for demand in list(self.demands):
            self._let_go(demand)

    # What the peer says

    def hear(self, news: Structure | None) -> None:
        """Take what an advisory of the peer says of consumers and temporary destinations."""
        if self._is_draining:
            return
        if isinstance(news, ConsumerInfo):
            self._hear_of_consumer(news)
        elif isinstance(news, RemoveInfo) and isinstance(news.object_id, ConsumerId):
            self._forget_consumer(news.object_id)
        elif isinstance(news, RemoveSubscriptionInfo):
            self._forget_subscriber((news.client_id or "", news.subscription_name or ""))
        elif isinstance(news, DestinationInfo):
            self._hear_of_destination(news)

    def _hear_of_consumer(self, info: ConsumerInfo) -> None:
        if info.browser or info.destination is None or info.consumer_id is None:
            return
        if self._is_too_far(info.broker_path) or is_advisory(info.destination):
            return
        if not is_permitted(self._settings, info.destination):
            return
        parts = info.destination.parts()
        if len(parts) == 1:
            # Behind a virtual queue may be a durable subscription; the queue keeps by itself.
            self._add(replace(info, subscription_name=None) if parts[0].is_queue else info)
            return
        subscriber = _subscriber_of(info)
        self._composites[info.consumer_id] = names = []
        for part in parts:
            identifier = self._next_id()
            names.append(identifier)
            own = None if subscriber is None else subscriber[1] + part.name
            whole = replace(info, consumer_id=identifier, destination=part, subscription_name=own)
            if subscriber is not None and (single := _subscriber_of(whole)) is not None:
                self._lists.setdefault(subscriber, set()).add(single)
            self._add(whole)

    def _is_too_far(self, path: tuple[BrokerId, ...] | None) -> bool:
        """Tell whether what was heard of has come too far, or from here."""
        names, most = names_of(path), self._settings.consumer_ttl
        return self._broker.broker_id in names or (most != UNLIMITED and len(names) >= most)

    def _hear_of_destination(self, info: DestinationInfo) -> None:
        destination = info.destination
        if destination is None or not destination.is_temporary:
            return
        if self._is_too_far(info.broker_path) or not self._settings.bridge_temp_destinations:
            return
        if info.operation_type == DestinationOperation.REMOVE:
            self._peer.paths.pop(destination, None)
            for demand in self.demands.of(destination):
                self._let_go(demand)
            self._broker.destinations.remove_temporary(self._connection, destination)
        else:
            self._make_temporary(destination, info.broker_path)

    def _make_temporary(self, destination: Destination, path: tuple[BrokerId, ...] | None) -> None:
        self._peer.paths[destination] = (*names_of(path), self._peer.broker_id)
        self._broker.destinations.create_temporary(self._connection, destination)

    # Demand comes

    def _add(self, info: ConsumerInfo) -> None:
        assert info.destination is not None and info.consumer_id is not None
        settings = self._settings
        if settings.conduit_subscriptions and self._join(info):
            return
        demand = Demand(info, info.destination, self._priority(info))
        ids = frozenset(ids_of(info))
        weaker: list[tuple[Demanding, Demand]] = []
        if self._is_unique(info.destination):
            rivals = list(self._bridges.others(ids, info.destination))
            if any(rival.priority >= demand.priority for _, rival in rivals):
                self._suppress(info)
                return
            weaker = rivals
        if not settings.conduit_subscriptions:
            demand.subscription_name = info.subscription_name
        elif self._must_last(info):
            demand.subscription_name = self._durable_name(info.destination)
        self._add_interest(demand, info)
        if self._subscribe(demand):
            for book, rival in weaker:
                book.yield_to(rival, ids)
            self._replace(demand)
        else:
            self.demands.remove(demand)

    def _replace(self, demand: Demand) -> None:
        """Have a durable subscription stand for those, too, whom a plain one of ours served."""
        if demand.subscription_name is None or not self._settings.conduit_subscriptions:
            return
        for other in self.demands.serving(demand.destination):
            if other.subscription_name is None and other.destination == demand.destination:
                moved, other.remotes = other.remotes, {}
                demand.remotes |= moved
                for info in moved.values():
                    self.demands.stands_not_for(other, ids_of(info))
                    self.demands.stands_for(demand, ids_of(info))
                self._let_go(other)

    def _join(self, info: ConsumerInfo) -> bool:
        """Have what is there stand for one more consumer; returns False when nothing serves it."""
        assert info.destination is not None
        if not self._may_share(info):
            return False
        serving = self.demands.serving(info.destination)
        found = [each for each in serving if self._is_shared(each)]
        if self._must_last(info):
            found = [each for each in found if each.subscription_name is not None]
        for demand in found:
            self._add_interest(demand, info)
            demand.judge_again()
        return bool(found)

    def _may_share(self, info: ConsumerInfo) -> bool:
        """Tell whether a consumer may share: a queue's of a third broker only where that is set."""
        assert info.destination is not None
        if not info.network_subscription or not info.destination.is_queue:
            return True
        return self._settings.conduit_network_queue_subscriptions

    def _is_shared(self, demand: Demand) -> bool:
        """Tell whether more consumers may join a demand.

        A queue's consumers have one of their own beside that of a list, so that other brokers know
        that somebody is there: only then messages are sent back to them.
        """
        if demand.is_static:
            return demand.destination.is_topic
        return self._may_share(demand.info)

    def _is_forced(self, info: ConsumerInfo) -> bool:
        assert info.destination is not None
        return info.subscription_name is None and is_forced_durable(
            self._settings, info.destination
        )

    def _add_interest(self, demand: Demand, info: ConsumerInfo) -> None:
        assert info.consumer_id is not None
        subscriber = _subscriber_of(info)
        is_conduit = self._settings.conduit_subscriptions
        if is_conduit and subscriber is not None:
            demand.subscribers.add(subscriber)
        elif is_conduit and self._is_forced(info):
            demand.forced.add(info.consumer_id)
            self.demands.stands_for(demand, (info.consumer_id,))
        else:
            demand.remotes[info.consumer_id] = info
            self.demands.stands_for(demand, ids_of(info))

    def _must_last(self, info: ConsumerInfo) -> bool:
        return info.subscription_name is not None or self._is_forced(info)

    def _is_unique(self, destination: Destination) -> bool:
        """Tell whether only one bridge at a time is to serve a consumer of *destination*."""
        settings = self._settings
        if destination.is_queue:
            return settings.suppress_duplicate_queue_subscriptions
        return settings.suppress_duplicate_topic_subscriptions

    def yield_to(self, demand: Demand, ids: frozenset[ConsumerId]) -> None:
        """See `Demanding`."""
        for identifier, info in list(demand.remotes.items()):
            if not ids.isdisjoint(ids_of(info)):
                del demand.remotes[identifier]
                self.demands.stands_not_for(demand, ids_of(info))
                self._suppress(info)
        if demand.is_needed():
            demand.judge_again()
        else:
            self._let_go(demand)

    def reconsider(self, ids: frozenset[ConsumerId]) -> None:
        """See `Demanding`."""
        for identifier, infos in list(self._suppressed.items()):
            if any(not ids.isdisjoint(ids_of(info)) for info in infos):
                del self._suppressed[identifier]
                for info in infos:
                    self._add(info)

    def _suppress(self, info: ConsumerInfo) -> None:
        """Note a consumer, of one destination or of several, that another bridge stands for."""
        assert info.consumer_id is not None
        self._suppressed.setdefault(info.consumer_id, []).append(info)

    def _priority(self, info: ConsumerInfo) -> int:
        settings = self._settings
        if not settings.decrease_network_consumer_priority:
            return info.priority
        length = len(info.broker_path or ()) + 1
        base = settings.consumer_priority_base
        return max(-128, base - length - 1) if length > 1 else base

    def _durable_name(self, destination: Destination) -> str:
        return f"{DURABLE_PREFIX}{self._broker.name}_{destination.name}"

    def _next_id(self) -> ConsumerId:
        return ConsumerId(self._connection.identifier, _SESSION, next(self._numbers))

    def _add_static(self, destination: Destination, subscription_name: str | None) -> None:
        identifier = self._next_id()
        info = ConsumerInfo(
            consumer_id=identifier, destination=destination, network_subscription=True
        )
        if self._settings.conduit_subscriptions and self._join_static(destination):
            return
        demand = Demand(info, destination, self._priority(info))
        demand.is_static = True
        forced = first_fit(self._settings.statically_included, destination)
        if subscription_name is None and forced is not None and forced.force_durable:
            subscription_name = self._durable_name(destination)
        demand.subscription_name = subscription_name
        self._subscribe(demand)

    def _join_static(self, destination: Destination) -> bool:
        found = [
            demand
            for demand in self.demands.serving(destination)
            if demand.is_static or destination.is_topic
        ]
        for demand in found:
            demand.is_static = True
        return bool(found)

    def _subscribe(self, demand: Demand) -> bool:
        """Begin to consume; returns False for a destination that we may not consume from."""
        info, settings, destination = demand.info, self._settings, demand.destination
        if destination.is_temporary and destination not in self._peer.paths:
            self._make_temporary(destination, info.broker_path)
        path = (*names_of(info.broker_path), self._peer.broker_id)
        route = NetworkRoute(
            self._broker.broker_id,
            self._peer.broker_id,
            path,
            ids_of(info),
            settings.message_ttl,
            demand.nearest,
        )
        request = ConsumeRequest(
            self._next_id(),
            demand.destination,
            settings.prefetch_size,
            None if settings.conduit_subscriptions else info.selector,
            subscription_name=demand.subscription_name,
            tag=demand,
            exclusive=info.exclusive,
            priority=demand.priority,
            retroactive=info.retroactive,
            pending_limit=info.maximum_pending_message_limit,
            network=route,
        )
        try:
            demand.consumer = self._broker.subscriptions.subscribe(self._connection, request, None)
        except BrokerError as error:
            self.refused[str(destination)] = str(error)
            return False
        self.refused.pop(str(destination), None)
        self.demands.add(demand)
        return True

    # Demand goes

    def _forget_consumer(self, identifier: ConsumerId) -> None:
        for part in self._composites.pop(identifier, ()):
            self._forget_consumer(part)
        self._suppressed.pop(identifier, None)
        for demand in self.demands.of_consumers((identifier,)):
            if identifier not in demand.remotes and identifier not in demand.forced:
                continue
            info = demand.remotes.pop(identifier, None)
            demand.forced.discard(identifier)
            self.demands.stands_not_for(demand, (identifier,) if info is None else ids_of(info))
            if demand.is_needed():
                demand.judge_again()
            else:
                self._drop(demand)

    def _forget_subscriber(self, subscriber: Subscriber) -> None:
        for part in self._lists.pop(subscriber, ()):
            self._forget_subscriber(part)
        if not self._settings.conduit_subscriptions:
            self._forget_durable(subscriber[1])
        for demand in list(self.demands):
            if subscriber in demand.subscribers:
                demand.subscribers.discard(subscriber)
                if not demand.is_needed():
                    self._drop(demand)

    def _forget_durable(self, name: str) -> None:
        """Delete a durable subscription of ours, if it is there and has no consumer."""
        lasting, connection = self._broker.subscriptions.lasting, self._connection
        with suppress(BrokerError):
            lasting.forget(connection.client_id, name, None, connection.rights)

    def _drop(self, demand: Demand) -> None:
        """End a demand, and its durable subscription unless that outlives its consumers."""
        name = demand.subscription_name
        self._let_go(demand)
        if name is not None and self._settings.conduit_subscriptions:
            self._finish(demand)
            self._forget_durable(name)

    def _let_go(self, demand: Demand) -> None:
        """Take no more messages, and end once those that were forwarded are confirmed."""
        demand.is_ending = True
        if demand.outstanding and demand.consumer is not None:
            self._broker.resize(demand.consumer, 0)
        else:
            self._finish(demand)

    def confirmed(self, demand: Demand) -> None:
        """End a demand that waited for its last message to be confirmed."""
        if demand.is_ending and not demand.outstanding:
            self._finish(demand)

    def closed(self, demand: Demand) -> None:
        """Hear that the broker has closed the consumer of a demand.

        One that was too slow begins again after a while, for those who are still interested then;
        a destination that was removed is gone.
        """
        destination = demand.destination
        if destination.is_pattern or self._broker.registry.find(destination) is not None:
            consumer, demand.consumer = demand.consumer, None
            if consumer is not None:
                self._broker.subscriptions.unsubscribe(consumer, DELIVERED_NOTHING)
            self._broker.call_after(AGAIN_MS, partial(self._begin_again, demand))
        else:
            demand.is_ending = True
            self._finish(demand)

    def _begin_again(self, demand: Demand) -> None:
        is_wanted = demand in self.demands and demand.consumer is None
        if is_wanted and not self._subscribe(demand):
            self._finish(demand)

    def _finish(self, demand: Demand) -> None:
        if demand not in self.demands:
            return
        self.demands.remove(demand)
        if demand.consumer is not None:
            self._broker.subscriptions.unsubscribe(demand.consumer, DELIVERED_NOTHING)
        self._bridges.ended(demand)


def _subscriber_of(info: ConsumerInfo) -> Subscriber | None:
    """Return the durable subscription that a consumer is of, if it is of one."""
    name = info.subscription_name
    return None if name is None else (info.client_id or "", name)
