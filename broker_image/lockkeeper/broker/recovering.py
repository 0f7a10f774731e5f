"""Recovery: what the store holds goes to those who keep it while the broker runs."""

from lockkeeper.broker.context import Context
from lockkeeper.broker.producer_audit import ProducerAudit
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.scheduling.making import SchedulerMaker
from lockkeeper.broker.streams.bridges import tell_sent
from lockkeeper.broker.streams.strays import move_strays
from lockkeeper.broker.streams.streams import Streams
from lockkeeper.broker.subscription_manager import SubscriptionManager
from lockkeeper.broker.transaction_manager import TransactionManager
from lockkeeper.store.base import Recovered


def give_back(
    recovered: Recovered,
    context: Context,
    registry: Registry,
    subscriptions: SubscriptionManager,
    transactions: TransactionManager,
    schedulers: SchedulerMaker,
    audit: ProducerAudit,
    streams: Streams,
) -> None:
    """Give back queues, subscriptions, prepared transactions, producers and streams."""
    streams.recover(recovered)
    for destination in recovered.existing:
        registry.ensure(context, destination)
    for destination in [*recovered.queues]:
        waiting = recovered.queues.pop(destination)
        registry.ensure_queue(context, destination).restore(waiting)
    for subscription in recovered.subscriptions:
        subscriptions.lasting.recover(subscription)
    subscriptions.lasting.start()
    for identifier, operations in recovered.prepared.items():
        transactions.recover(identifier, operations)
    schedulers.recover()
    audit.restore(recovered.producers)
    tell_sent(streams, audit.note)
    context.copy_ids.resume(recovered.producers)
    move_strays(context, recovered.strays)
