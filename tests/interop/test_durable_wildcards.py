"""Durable subscriptions to wildcards and lists go from ActiveMQ to Lockkeeper and back, whole."""

from collections.abc import Callable, Iterator
from pathlib import Path

import brokers
import pytest
import wire
from contents import QUIET_SECONDS
from ports import free_port

from lockkeeper.client import connect
from lockkeeper.message.destination import topic
from lockkeeper.message.openwire import (
    DELIVERED_NOTHING,
    AckType,
    ConnectionId,
    MessageAck,
    RemoveInfo,
    RemoveSubscriptionInfo,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]

OURS, THEIRS = "lockkeeper", "activemq"
CLIENT = "reader"
NEWS, LIST = "NEWS.>", "ONE,TWO.*"
Contents = dict[str, list[str]]
Start = Callable[[str], brokers.RunningBroker]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a broker, of either kind, on the one directory."""
    reason = brokers.missing(THEIRS)
    if reason:
        pytest.skip(reason)
    started: list[brokers.RunningBroker] = []

    def start_one(kind: str) -> brokers.RunningBroker:
        home, port = tmp_path / f"{len(started)}-{kind}", free_port()
        home.mkdir()
        if kind == THEIRS:
            command = brokers.activemq_command(home, port, tmp_path)
        else:
            listener = f"openwire://127.0.0.1:{port}"
            command = [*brokers.LOCKKEEPER, "broker", "--data", str(tmp_path / "kahadb")]
            command += ["--listen", listener, "--admin", "127.0.0.1:0"]
        started.append(brokers.RunningBroker(kind, port, home, command))
        return started[-1]

    yield start_one
    for broker in started:
        broker.kill()


def send(broker: brokers.RunningBroker, **texts: str) -> None:
    """Send one text to each topic; two underscores stand for a dot."""
    with connect(broker.url) as connection:
        session = connection.session()
        for name, text in texts.items():
            session.producer(topic(name.replace("__", "."))).send(text)


def contents(
    broker: brokers.RunningBroker, name: str, wanted: str, taken: frozenset[str] = frozenset()
) -> Contents:
    """Return what a subscription holds of each topic; what is *taken* it acknowledges."""
    found: Contents = {}
    with wire.Wire(broker.port, CLIENT) as connection:
        consumer = connection.consumer(topic(wanted), subscription_name=name)
        while (dispatch := connection.next_dispatch(QUIET_SECONDS)) is not None:
            message = dispatch.message
            assert message is not None and message.destination is not None
            text = (message.content or b"")[4:].decode()
            found.setdefault(message.destination.name, []).append(text)
            if text in taken:
                acknowledgement = MessageAck(
                    destination=message.destination,
                    consumer_id=consumer,
                    ack_type=AckType.INDIVIDUAL,
                    first_message_id=message.message_id,
                    last_message_id=message.message_id,
                    message_count=1,
                )
                connection.request(acknowledgement)
        leave = RemoveInfo(object_id=consumer, last_delivered_sequence=DELIVERED_NOTHING)
        connection.request(leave)
        connection.leave()
    return found


def unsubscribe(broker: brokers.RunningBroker, name: str) -> None:
    """Delete a subscription."""
    with wire.Wire(broker.port, CLIENT) as connection:
        ended = RemoveSubscriptionInfo(
            connection_id=ConnectionId(connection.name), client_id=CLIENT, subscription_name=name
        )
        try:
            connection.request(ended)
        finally:
            # ActiveMQ lets nobody else have the client id before.
            connection.leave()


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize(("first", "second"), [(THEIRS, OURS), (OURS, THEIRS)])
def test_what_waits_for_a_wildcard_goes_over_and_back(
    first: str, second: str, end: str, start: Start
) -> None:
    broker = start(first)
    send(broker, NEWS__HOME="before")
    assert contents(broker, "wild", NEWS) == {}
    assert contents(broker, "list", LIST) == {}
    send(broker, NEWS__HOME="a", NEWS__WORLD="b", NEWS="c", ONE="d", TWO__X="e", OTHER="f")
    send(broker, NEWS__HOME="g", TWO__X="h")
    expected = {"NEWS.HOME": ["a", "g"], "NEWS.WORLD": ["b"], "NEWS": ["c"]}
    listed = {"ONE": ["d"], "TWO.X": ["e", "h"]}
    assert contents(broker, "wild", NEWS) == expected
    assert contents(broker, "list", LIST, frozenset("d")) == listed
    getattr(broker, end)()

    broker = start(second)
    listed = {"TWO.X": ["e", "h"]}
    assert contents(broker, "wild", NEWS) == expected
    assert contents(broker, "list", LIST) == listed
    send(broker, NEWS__WORLD="i", NEWS__LATER="j", TWO__Y="k", ONE="l")
    expected |= {"NEWS.WORLD": ["b", "i"], "NEWS.LATER": ["j"]}
    assert contents(broker, "wild", NEWS, frozenset("bg")) == expected
    getattr(broker, end)()

    broker = start(first)
    expected |= {"NEWS.HOME": ["a"], "NEWS.WORLD": ["i"]}
    assert contents(broker, "wild", NEWS) == expected
    assert contents(broker, "list", LIST) == {"ONE": ["l"], "TWO.X": ["e", "h"], "TWO.Y": ["k"]}
    send(broker, NEWS__MORE="m")
    assert contents(broker, "wild", NEWS) == expected | {"NEWS.MORE": ["m"]}
    unsubscribe(broker, "wild")
    unsubscribe(broker, "list")
    send(broker, NEWS__HOME="nobody's", ONE="nobody's")
    getattr(broker, end)()

    broker = start(second)
    with pytest.raises(wire.RefusedError, match="InvalidDestinationException"):
        unsubscribe(broker, "wild")
    assert contents(broker, "wild", NEWS) == {}
    assert contents(broker, "list", LIST) == {}
