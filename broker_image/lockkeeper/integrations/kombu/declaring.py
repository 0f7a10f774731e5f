"""Declarations of exchanges, queues and bindings, as AMQP's channels have them."""

import uuid
from collections.abc import Mapping
from typing import Any

from amqp.exceptions import RecoverableConnectionError
from amqp.protocol import queue_declare_ok_t
from kombu.exceptions import ChannelError
from kombu.transport.base import StdChannel, to_rabbitmq_queue_arguments

from lockkeeper.client.blocking.session import Session
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.errors import RefusedError
from lockkeeper.integrations.kombu.bindings import Binding
from lockkeeper.integrations.kombu.connection import Connection
from lockkeeper.integrations.kombu.exchanges import DIRECT, TYPES
from lockkeeper.integrations.kombu.transient import TransientQueue
from lockkeeper.message.destination import Destination, queue

NOT_FOUND, PRECONDITION_FAILED, NOT_IMPLEMENTED, SYNTAX_ERROR = 404, 406, 540, 502
"""AMQP's reply codes (AMQP 0-9-1, section 1.2)."""
EXPIRES, MAX_PRIORITY = "x-expires", "x-max-priority"


class DeclaringChannel(StdChannel):  # type: ignore[misc]
    """A channel as far as exchanges, queues and bindings go."""

    def __init__(self, connection: Connection) -> None:
        self.closed = False
        self._link = connection
        self._getting: Session | None = None

    def _check_open(self) -> None:
        if self.closed:
            raise RecoverableConnectionError("the channel is closed")
        self._link.check_open()

    def _getting_session(self) -> Session:
        if self._getting is None:
            self._getting = self._link.session(Acknowledge.INDIVIDUAL)
        return self._getting

    # Exchanges

    def exchange_declare(
        self,
        exchange: str | None = None,
        type: str | None = DIRECT,
        durable: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        nowait: bool = False,
        passive: bool = False,
    ) -> None:
        """Declare an exchange: this connection knows its type, others once it is bound."""
        self._check_open()
        kind = type or DIRECT
        name = exchange_called(exchange or f"amq.{kind}")
        known = self._link.exchange_types.get(name)
        if passive:
            if known is None and self._link.bindings.type_of(name) is None:
                raise _error(f"NOT_FOUND - no exchange {name!r}", NOT_FOUND)
            return
        if kind not in TYPES:
            text = f"exchange {name!r}: there are no exchanges of type {kind!r}"
            raise _error(f"NOT_IMPLEMENTED - {text}", NOT_IMPLEMENTED)
        if known not in (None, kind):
            text = f"exchange {name!r} is of type {known!r}, not {kind!r}"
            raise _error(f"PRECONDITION_FAILED - {text}", PRECONDITION_FAILED)
        self._link.exchange_types[name] = kind

    def exchange_delete(self, exchange: str, if_unused: bool = False, nowait: bool = False) -> None:
        """Delete an exchange with its bindings."""
        self._check_open()
        self._link.exchange_types.pop(exchange, None)
        self._link.bindings.remove_exchange(exchange_called(exchange))

    # Queues

    def prepare_queue_arguments(
        self, arguments: Mapping[str, Any], **options: Any
    ) -> Mapping[str, Any]:
        """Return arguments under RabbitMQ's names; of them `x-expires` plays a role."""
        prepared: Mapping[str, Any] = to_rabbitmq_queue_arguments(dict(arguments), **options)
        return prepared

    def queue_declare(
        self,
        queue: str | None = None,
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        nowait: bool = False,
    ) -> queue_declare_ok_t:
        """Declare a queue; brokers make it when it is used.

        One that is exclusive, or expires and is not durable, lives in this connection. Messages
        are counted for a *passive* call only, and consumers never: the broker is browsed for it.
        """
        self._check_open()
        name = queue or f"amq.gen-{uuid.uuid4()}"
        queue_called(name)
        if passive:
            return queue_declare_ok_t(name, self._count(name), 0)
        is_transient = exclusive or (not durable and (arguments or {}).get(EXPIRES) is not None)
        if is_transient and name not in self._link.transient_queues:
            is_prioritised = (arguments or {}).get(MAX_PRIORITY) is not None
            transient = TransientQueue(self._link, name, is_prioritised)
            self._link.transient_queues[name] = transient
        if is_transient or auto_delete:
            self._link.auto_delete.add(name)
        return queue_declare_ok_t(name, 0, 0)

    def _count(self, name: str) -> int:
        count = sum(1 for _ in self._getting_session().browse(queue(name)))
        transient = self._link.transient_queues.get(name)
        return count + (len(transient) if transient is not None else 0)

    def queue_bind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        nowait: bool = False,
    ) -> None:
        """Bind a queue to an exchange; the binding is on disk when this returns."""
        name, binding, transient = self._bound(queue, exchange, routing_key)
        if transient is None:
            self._link.bindings.add(name, binding)
            return
        transient.bind(name, binding)
        # That somebody listens stays known: who publishes is told once.
        self._link.bindings.add(name, Binding(binding.type, "", ""))

    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        nowait: bool = False,
    ) -> None:
        """Undo a binding."""
        name, binding, transient = self._bound(queue, exchange, routing_key)
        if transient is not None:
            transient.unbind(name, binding)
        else:
            self._link.bindings.remove(name, binding)

    def _bound(
        self, queue: str, exchange: str | None, routing_key: str
    ) -> tuple[str, Binding, TransientQueue | None]:
        """Return the exchange, the binding, and the queue if it lives in the connection."""
        self._check_open()
        name = exchange_called(exchange or "amq.direct")
        kind = self._link.exchange_types.get(name) or self._link.bindings.type_of(name)
        binding = Binding(kind or DIRECT, routing_key, queue)
        return name, binding, self._link.transient_queues.get(queue)

    def queue_purge(self, queue: str, nowait: bool = False) -> int:
        """Remove what waits in a queue, and return how many messages there were."""
        self._check_open()
        transient = self._link.transient_queues.get(queue)
        count = transient.purge() if transient is not None else 0
        with self._link.session() as session:
            consumer = session.consumer(queue_called(queue), prefetch=0)
            while consumer.receive(0) is not None:
                count += 1
        return count

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, nowait: bool = False
    ) -> int:
        """Delete a queue with its bindings, and return how many messages are gone.

        One that is consumed stays on the broker, without its bindings; with *if_unused* it stays
        as it is.
        """
        self._check_open()
        count = self._count(queue)
        if if_empty and count:
            return 0
        for channel in [*self._link.channels]:
            # Who gets messages one by one consumes nothing, in AMQP.
            channel.stop_getting(queue)
        try:
            self._link.delete_queue(queue)
        except RefusedError as error:
            if if_unused:
                raise _error(f"PRECONDITION_FAILED - {error}", PRECONDITION_FAILED) from error
            count = 0
        transient = self._link.transient_queues.pop(queue, None)
        if transient is not None:
            transient.close()
        self._link.bindings.remove_queue(queue)
        self._link.auto_delete.discard(queue)
        return count

    def list_bindings(self) -> "list[tuple[str, str, str]]":
        """Return queue, exchange and routing key of every binding on the broker."""
        self._check_open()
        return [
            (each.queue, exchange, each.routing_key)
            for exchange, each in self._link.bindings.list_all()
        ]


def queue_called(name: str | None) -> Destination:
    """Return the queue of that name. Raises ChannelError for one that OpenWire cannot have."""
    if not name:
        raise _error("SYNTAX_ERROR - a message without a queue needs an exchange", SYNTAX_ERROR)
    _check_name("queue", name)
    return queue(name)


def exchange_called(name: str) -> str:
    """Return the name. Raises ChannelError if OpenWire cannot have destinations called so."""
    _check_name("exchange", name)
    return name


def _check_name(kind: str, name: str) -> None:
    found = queue(name)
    if found.is_composite or found.is_pattern or "?" in name:
        text = f"{kind} {name!r}: names have no comma or question mark, nor * or > as a word"
        raise _error(f"SYNTAX_ERROR - {text}", SYNTAX_ERROR)


def _error(text: str, code: int) -> ChannelError:
    return ChannelError(text, (0, 0), "", code)
