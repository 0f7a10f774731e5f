"""ActiveMQ opens a journal in which copies of one message have met, and serves each of them."""

from pathlib import Path

import brokers
import pytest
from ports import free_port

from lockkeeper.client import Acknowledge, RedeliveryPolicy, connect

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COLLECTORS = ("Consumer.A.VirtualTopic.NEWS", "Consumer.B.VirtualTopic.NEWS")
TEXTS = ("one", "two", "three")
AT_ONCE = RedeliveryPolicy(0, initial_redelivery_delay=0, redelivery_delay=0)


@pytest.fixture(params=["activemq 5", "activemq 6"])
def activemq(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[int, list[str]]:
    """The port and the command line of an ActiveMQ with its journal in `kahadb` of the test's."""
    port = free_port()
    if request.param == "activemq 6":
        class_path = request.getfixturevalue("activemq6_classpath")
        return port, brokers.activemq6_command(class_path, port, tmp_path)
    reason = brokers.missing("activemq")
    if reason:
        pytest.skip(reason)
    return port, brokers.activemq_command(tmp_path / "theirs", port, tmp_path)


def let_copies_die(url: str) -> None:
    """Send to a virtual topic, and give up both copies of each message."""
    with connect(url, redelivery=AT_ONCE) as connection:
        sessions = [connection.session(transacted=True) for _ in COLLECTORS]
        consumers = [
            session.consumer(name) for session, name in zip(sessions, COLLECTORS, strict=True)
        ]
        connection.session().producer("topic://VirtualTopic.NEWS").send_many(TEXTS)
        for session, consumer in zip(sessions, consumers, strict=True):
            for _ in TEXTS:
                assert consumer.receive(5) is not None
            session.rollback("nobody can read it")


def letters(url: str) -> list[tuple[str, str, str]]:
    """Return text, JMSMessageID and origin of the dead letters."""
    with connect(url) as connection:
        return sorted(
            (str(each.body), each.message_id, str(each.original_destination))
            for each in connection.session().browse("ActiveMQ.DLQ")
        )


def consume(url: str, count: int) -> list[str]:
    """Consume so many dead letters, each acknowledged by itself."""
    with connect(url) as connection:
        session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
        consumer = session.consumer("ActiveMQ.DLQ", prefetch=1)
        found = []
        for _ in range(count):
            message = consumer.receive(5)
            assert message is not None
            found.append(" of ".join((str(message.body), str(message.original_destination))))
            message.acknowledge()
        return found


def test_both_copies_of_each_message_go_to_activemq_and_back(
    activemq: tuple[int, list[str]], tmp_path: Path
) -> None:
    port = free_port()
    listen = ("--listen", f"openwire://127.0.0.1:{port}", "--admin", "127.0.0.1:0")
    command = [*brokers.LOCKKEEPER, "broker", "--data", str(tmp_path / "kahadb"), *listen]
    ours = brokers.RunningBroker("lockkeeper", port, tmp_path / "ours", command)
    theirs = None
    try:
        let_copies_die(ours.url)
        died = letters(ours.url)
        assert [text for text, _, _ in died] == sorted([*TEXTS, *TEXTS])
        assert len({identifier for _, identifier, _ in died}) == len(TEXTS)
        consumed = consume(ours.url, 1)
        ours.stop()
        theirs = brokers.RunningBroker("activemq", activemq[0], tmp_path / "theirs", activemq[1])
        kept = letters(theirs.url)
        assert len(kept) == len(died) - 1 and set(kept) < set(died)
        consumed += consume(theirs.url, 2)
        theirs.stop()
        ours.start()
        assert len(letters(ours.url)) == len(died) - 3
        consumed += consume(ours.url, 3)
        assert sorted(consumed) == sorted(
            f"{text} of queue://{name}" for text in TEXTS for name in COLLECTORS
        )
        assert letters(ours.url) == []
    finally:
        ours.kill()
        if theirs is not None:
            theirs.kill()
