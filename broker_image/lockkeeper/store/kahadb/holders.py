"""Holders of topics' messages after a replay: how many durable subscriptions need each."""

from lockkeeper.store.base import Add, Recovered, Remove
from lockkeeper.store.kahadb.file_references import FileReferences


def count_holders(file_references: FileReferences, recovered: Recovered) -> None:
    """Set how many durable subscriptions still need each message of a topic."""
    operations = [one for several in recovered.prepared.values() for one in several]
    consumed = [
        reference
        for one in operations
        if isinstance(one, Remove) and one.subscription
        for reference in one.references
    ]
    pending = [one for subscription in recovered.subscriptions for one in subscription.pending]
    for reference in pending + consumed:
        reference.holders = 0
    for reference in pending + consumed:
        reference.holders += 1
    for operation in operations:
        if isinstance(operation, Add) and operation.destination.is_topic:
            subscriptions = file_references.destination(operation.destination).subscriptions
            for reference in operation.references:
                reference.holders = len(subscriptions)
        elif isinstance(operation, Remove) and operation.subscription is not None:
            subscription = operation.subscription
            consumer = file_references.subscriptions[operation.destination, subscription.key]
            consumer.pending += len(operation.references)
