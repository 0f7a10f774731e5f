"""Streams that somebody declares while the broker runs, the operator as a rule.

Who declared one is kept in memory only; the stream and its settings are in the journal.
"""

from collections.abc import Iterator
from typing import Any

from lockkeeper.broker.core import Broker
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.message.segments import parse_segment
from lockkeeper.server.conversion import converted
from lockkeeper.server.declarations import OwnedForm, read_form
from lockkeeper.server.stream_views import destination_like_view
from lockkeeper_api.streams import Stream as StreamModel


class _Form(OwnedForm):
    """What a declaration has to look like."""

    policy: StreamModel = StreamModel()
    """Settings of the stream; absent: the usual ones."""


class StreamDeclarations:
    """Declared streams of one master: the owner of each, and its settings as JSON."""

    def __init__(self) -> None:
        self._declared: dict[str, tuple[str, dict[str, Any] | None]] = {}

    def declare(self, broker: Broker, name: str, value: Any) -> None:
        """Make a stream, or change its settings.

        Raises InvalidDeclarationError or BrokerError, with nothing changed.
        """
        form = read_form(_Form, value)
        broker.streams.declare(name, converted(form.policy, StreamSettings))
        self._declared[name] = (form.owner, value.get("policy"))

    def remove(self, broker: Broker, name: str) -> None:
        """Delete a stream with its messages. Raises BrokerError."""
        broker.streams.remove(name)
        self._declared.pop(name, None)

    def view(self, broker: Broker, name: str) -> dict[str, Any] | None:
        """Return what there is to tell of a stream, None where there is none."""
        stream = broker.streams.find(name)
        if stream is None:
            return None
        owner, policy = self._declared.get(name, ("", None))
        view = destination_like_view(broker, stream)
        return {**view, "policy": policy, "owner": owner or None}

    def owned(self, broker: Broker) -> Iterator[dict[str, Any]]:
        """Yield the same of all streams with an owner."""
        for name in list(self._declared):
            view = self.view(broker, name)
            if view is not None and view["owner"]:
                yield view


def is_stream_in_use(broker: Broker, name: str) -> bool:
    """Tell whether a stream has messages or members that read it, or awaits messages.

    Those are what is being written, or is to come of a transaction.
    """
    stream = broker.streams.find(name)
    if stream is None:
        return False
    members = (member for group in broker.streams.groups for member in group.members.values())
    if any(name in member.subscriptions for member in members):
        return True
    if any(partition.next > partition.minimum for partition in stream.partitions):
        return True
    segments = map(parse_segment, broker.destinations.awaiting())
    is_awaiting = any(segment is not None and segment.stream == name for segment in segments)
    return is_awaiting or broker.streams.halves.wait_for(name)
