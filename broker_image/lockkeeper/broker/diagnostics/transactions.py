"""Diagnostics of a message whose transaction is not over."""

from itertools import chain
from typing import TYPE_CHECKING

from lockkeeper.broker.diagnostics.reason import Reason, facts_of_connection

if TYPE_CHECKING:
    from lockkeeper.broker.core import Broker
    from lockkeeper.broker.regions.queue import Queue


def why_in_transaction(broker: "Broker", queue: "Queue", message_id: str) -> Reason | None:
    """Return which transaction has sent or consumed a message of a queue, None if none has."""
    key = message_id.encode()
    open_ones = (
        (identifier, transaction, facts_of_connection(connection))
        for connection in broker.connections.values()
        for identifier, transaction in connection.transactions.items()
    )
    nobody: dict[str, str] = {}
    prepared = ((each, one, nobody) for each, one in broker.transactions.prepared.items())
    for identifier, transaction, facts in [*open_ones, *prepared]:
        sent = (run.references for run in transaction.sent if run.route is queue)
        consumed = (run.references for run in transaction.consumed if run.backlog is queue)
        for done, runs in (("sent", sent), ("consumed", consumed)):
            if any(
                each.message is not None and each.message.identifier == key
                for each in chain.from_iterable(runs)
            ):
                state = transaction.state.value
                return Reason(
                    f"{done}-in-transaction",
                    f"it was {done} in transaction {identifier}, which is {state}",
                    "the transaction has to be committed or rolled back",
                    {"transaction": str(identifier), "state": state, **facts},
                )
    return None
