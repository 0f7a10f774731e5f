"""One reason: a code for programs, a sentence for people, and the way out."""

from typing import Any, NamedTuple

from lockkeeper.broker.subscriptions.consumer import Consumer, Peer


class Reason(NamedTuple):
    """Reason for a wait, with its way out; `facts` are the values in the sentence."""

    code: str
    text: str
    way_out: str
    facts: dict[str, Any]

    def view(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"reason": self.code, "text": self.text, "wayOut": self.way_out, **self.facts}


def counted(count: int, noun: str) -> str:
    """Return *count* of something whose plural ends in s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def name_of(consumer: Consumer) -> str:
    """Return how a consumer is named in sentences."""
    return f"consumer {consumer.identifier} at {consumer.connection.address}"


def facts_of(consumer: Consumer) -> dict[str, Any]:
    """Return how a consumer is named in JSON."""
    return {"consumer": str(consumer.identifier), **facts_of_connection(consumer.connection)}


def facts_of_connection(connection: Peer) -> dict[str, Any]:
    """Return how a connection is named in JSON."""
    return {
        "connection": connection.identifier,
        "clientId": connection.client_id,
        "address": connection.address,
    }
