"""States that outlive the broker: small JSON texts by name, one message each in a queue of ours.

A new text is a new message, and the removal of the one before. After a crash both may be there:
the later one counts. ActiveMQ sees a queue that nobody consumes, and keeps it.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from lockkeeper.broker.context import Context
from lockkeeper.message.bodies import MessageType, decode_body, encode_body
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId, ProducerId, TransactionId
from lockkeeper.message.openwire import ActiveMQTextMessage
from lockkeeper.message.primitives import encode_map
from lockkeeper.message.rewrite import decoded, encoded, properties_of
from lockkeeper.message.segments import STATE_NAME, STATES
from lockkeeper.store.base import Add, Operation, Receipt, Reference, Remove


class State(NamedTuple):
    """A text that was found: the name it is kept by, and what it says."""

    name: str
    value: dict[str, Any]


class StateBook:
    """Keeps what is to be known after a restart."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._references: dict[str, Reference] = {}
        # Each run of the broker is a producer of its own, later than all that are known: ids never
        # come again, and their numbers are close, as ActiveMQ's audit counts all between two.
        self._run = 1
        self._count = 0

    def recover(self, references: Sequence[Reference]) -> list[State]:
        """Return what was kept, the latest of each name; blocks while it is read."""
        store = self._context.store
        store.load(references, self._context.next_sequence(max(1, len(references))))
        found: dict[str, State] = {}
        for reference in references:
            state, run = _read(reference)
            self._run = max(self._run, run + 1)
            if state is None:
                continue
            if state.name in self._references:
                store.remove(STATES, self._references.pop(state.name))
            self._references[state.name] = reference
            found[state.name] = state
        return list(found.values())

    def put(self, name: str, value: dict[str, Any], receipt: Receipt | None = None) -> None:
        """Keep a value; the receipt is settled when it is durable."""
        reference = self._written(name, value)
        self._context.store.add(STATES, reference, receipt)
        self.remove(name)
        self._references[name] = reference

    def commit(
        self,
        transaction: TransactionId,
        name: str,
        value: dict[str, Any],
        others: Sequence[Operation],
        receipt: Receipt,
    ) -> None:
        """Keep a value in one batch of the journal with *others*: all of it, or nothing.

        Raises StoreError with nothing changed.
        """
        reference, before = self._written(name, value), self._references.get(name)
        operations = [*others, Add(STATES, [reference])]
        if before is not None:
            operations.append(Remove(STATES, [before]))
        self._context.store.commit(transaction, operations, receipt)
        self._references[name] = reference

    def _written(self, name: str, value: dict[str, Any]) -> Reference:
        """Return a value as a message that is not handed to the store yet."""
        self._count += 1
        producer = ProducerId("ID:lockkeeper-stream-state", 0, self._run)
        message = encoded(
            ActiveMQTextMessage(
                producer_id=producer,
                destination=STATES,
                message_id=MessageId(producer, self._count),
                persistent=True,
                timestamp=self._context.now,
                broker_in_time=self._context.now,
                content=encode_body(MessageType.TEXT, json.dumps(value, separators=(",", ":"))),
                marshalled_properties=encode_map({STATE_NAME: name}),
            ),
            self._context.next_sequence(),
        )
        return Reference(message, len(message.body))

    def remove(self, name: str) -> None:
        """Forget what is kept by a name, if there is anything."""
        reference = self._references.pop(name, None)
        if reference is not None:
            self._context.store.remove(STATES, reference, skip_unwritten=False)


def _read(reference: Reference) -> tuple[State | None, int]:
    """Return what a message says, None if it says nothing that we know, and the run it is of."""
    message, run = reference.loaded, 0
    try:
        fields = decoded(message)
        if fields.message_id is not None and fields.message_id.producer_id is not None:
            run = fields.message_id.producer_id.session_id
        name = properties_of(fields).get(STATE_NAME)
        text = decode_body(message.body[0], fields.content)
        value = json.loads(text) if isinstance(text, str) else None
    except (MalformedMessageError, ValueError):
        return None, run
    if not isinstance(name, str) or not isinstance(value, dict):
        return None, run
    return State(name, value), run
