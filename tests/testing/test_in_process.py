"""A broker under test: its time, its network, its journal and its disk, as clients see them."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockkeeper.client import Connection, RefusedError, aio, connect
from lockkeeper.server.configuration import RefusedConfigurationError
from lockkeeper.testing.in_process import InProcessBroker

SIX_HOURS = 6 * 3600
SOON = 20.0


@pytest.fixture
def connection(lockkeeper_broker: InProcessBroker) -> Iterator[Connection]:
    with connect(f"failover:({lockkeeper_broker.url})?maxReconnectDelay=20") as connection:
        yield connection


def bodies(connection: Connection, name: str) -> list[object]:
    return [message.body for message in connection.session().browse(name)]


def test_what_is_scheduled_for_the_evening_arrives_at_once(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    session = connection.session()
    session.producer("A").send("later", {"AMQ_SCHEDULED_DELAY": SIX_HOURS * 1000})
    consumer = session.consumer("A")
    lockkeeper_broker.advance("5h59m")
    assert consumer.receive(timeout=0.2) is None
    lockkeeper_broker.advance("1m")
    message = consumer.receive(timeout=SOON)
    assert message is not None
    assert message.body == "later"


def test_what_is_repeated_comes_as_often_as_time_has_passed_for(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    hour = 3600 * 1000
    repeated = {"AMQ_SCHEDULED_DELAY": hour, "AMQ_SCHEDULED_PERIOD": hour}
    session = connection.session()
    session.producer("A").send("tick", {**repeated, "AMQ_SCHEDULED_REPEAT": 9})
    began = lockkeeper_broker.now
    lockkeeper_broker.advance("6h")
    consumer = session.consumer("A")
    times = [message.timestamp for message in (consumer.receive(SOON) for _ in range(6)) if message]
    expected = [(began + 3600 * number) * 1000 for number in range(1, 7)]
    assert times == pytest.approx(expected, abs=30_000)
    assert consumer.receive(timeout=0.1) is None


def test_what_is_not_consumed_in_time_expires(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    producer = connection.session().producer("A")
    producer.send("for an hour", time_to_live=3600)
    producer.send("for ever")
    lockkeeper_broker.advance(3599)
    assert bodies(connection, "A") == ["for an hour", "for ever"]
    lockkeeper_broker.advance("2s")
    assert bodies(connection, "A") == ["for ever"]
    # A client's clock is an hour behind, and its messages live as long as they are to.
    producer.send("for a minute", time_to_live=60)
    assert bodies(connection, "A") == ["for ever", "for a minute"]


def test_time_that_passes_is_nobodys_silence(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    consumer = connection.session().consumer("A")
    resumed: list[object] = []
    connection.on_resumed = lambda: resumed.append(connection.address)
    lockkeeper_broker.advance("7h")
    connection.session().producer("A").send("still here")
    message = consumer.receive(timeout=SOON)
    assert message is not None
    assert message.body == "still here"
    assert resumed == []


REDELIVERING = """\
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {name: patient}
spec:
  destinationPolicies:
    - match: ">"
      redelivery: {initialRedeliveryDelay: 1h, maximumRedeliveries: 2, redeliveryDelay: 4h}
"""


def test_delays_of_redelivery_by_the_broker_pass_at_once(tmp_path: Path) -> None:
    file = tmp_path / "broker.yaml"
    file.write_text(REDELIVERING)
    options = "jms.redeliveryPolicy.maximumRedeliveries=0"
    with InProcessBroker(file) as broker, connect(f"{broker.url}?{options}") as connection:
        session = connection.session(transacted=True)
        connection.session().producer("A").send("bad")
        consumer = session.consumer("A")
        for delay in ("1h", "4h"):
            assert consumer.receive(timeout=SOON) is not None
            session.rollback()
            assert consumer.receive(timeout=0.1) is None
            broker.advance(delay)
        assert consumer.receive(timeout=SOON) is not None
        session.rollback()
        deadline = time.monotonic() + SOON
        while not bodies(connection, "ActiveMQ.DLQ") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert bodies(connection, "ActiveMQ.DLQ") == ["bad"]


def test_a_client_goes_on_after_a_cut(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    consumer = connection.session().consumer("A")
    lockkeeper_broker.cut()
    connection.session().producer("A").send("after the cut")
    message = consumer.receive(timeout=SOON)
    assert message is not None
    assert message.body == "after the cut"


def test_a_killed_broker_has_kept_what_it_confirmed_and_nothing_else(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    session = connection.session()
    session.producer("A").send("confirmed")
    session.producer("A").send("in memory alone", persistent=False)
    lockkeeper_broker.kill()
    assert list(lockkeeper_broker.directory.glob("db-*.log"))
    lockkeeper_broker.start()
    assert bodies(connection, "A") == ["confirmed"]


def test_what_is_consumed_within_a_transaction_comes_again_after_a_kill(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    connection.session().producer("A").send("once")
    session = connection.session(transacted=True)
    assert session.consumer("A").receive(timeout=SOON) is not None
    lockkeeper_broker.kill()
    lockkeeper_broker.start()
    with connect(lockkeeper_broker.url) as other:
        connection.close()
        message = other.session().consumer("A").receive(timeout=SOON)
        assert message is not None
        assert message.body == "once"


def test_a_stop_and_a_start_keep_time_and_url(lockkeeper_broker: InProcessBroker) -> None:
    url = lockkeeper_broker.url
    with connect(url) as connection:
        properties = {"AMQ_SCHEDULED_DELAY": 7_200_000}
        connection.session().producer("A").send("in two hours", properties)
    lockkeeper_broker.advance("1h")
    lockkeeper_broker.stop()
    with pytest.raises(RuntimeError, match="call start"):
        lockkeeper_broker.advance("1h")
    lockkeeper_broker.start()
    assert lockkeeper_broker.url == url
    lockkeeper_broker.advance("1h")
    with connect(url) as connection:
        assert bodies(connection, "A") == ["in two hours"]


def test_a_send_to_a_full_disk_waits_until_there_is_room(
    lockkeeper_broker: InProcessBroker, connection: Connection
) -> None:
    session = connection.session()
    producer = session.producer("A")
    producer.send("before")
    lockkeeper_broker.fill_disk()
    sent = threading.Event()

    def send() -> None:
        connection.session().producer("A").send("waits")
        sent.set()

    sender = threading.Thread(target=send)
    sender.start()
    assert not sent.wait(0.2)
    # There is still room to consume: that is how a disk gets empty again.
    message = session.consumer("A").receive(timeout=SOON)
    assert message is not None
    assert message.body == "before"
    lockkeeper_broker.free_disk()
    assert sent.wait(SOON)
    sender.join()


def test_a_broker_that_lets_nobody_wait_refuses_what_has_no_room(tmp_path: Path) -> None:
    file = tmp_path / "broker.yaml"
    usage = "spec: {systemUsage: {sendFailIfNoSpace: true}}\n"
    file.write_text(REDELIVERING[: REDELIVERING.index("spec:")] + usage)
    with InProcessBroker(file) as broker, connect(broker.url) as connection:
        broker.fill_disk()
        with pytest.raises(RefusedError, match="no room on the disk"):
            connection.session().producer("A").send("too much", timeout=SOON)


def test_a_large_message_has_room_in_the_small_files(connection: Connection) -> None:
    session = connection.session()
    large = bytes(2_000_000)
    session.producer("A").send(large)
    message = session.consumer("A").receive(timeout=SOON)
    assert message is not None
    assert message.body == large


def test_coroutines_use_it_as_threads_do(lockkeeper_broker: InProcessBroker) -> None:
    async def course() -> object:
        async with await aio.connect(lockkeeper_broker.url) as connection:
            session = connection.session()
            producer = await session.producer("A")
            await producer.send("later", {"AMQ_SCHEDULED_DELAY": 1000 * SIX_HOURS})
            consumer = await session.consumer("A")
            lockkeeper_broker.advance("6h")
            message = await consumer.receive(timeout=SOON)
            return message and message.body

    assert asyncio.run(course()) == "later"


def test_two_brokers_know_nothing_of_each_other() -> None:
    with InProcessBroker() as one, InProcessBroker() as other:
        assert one.url != other.url
        with connect(one.url) as connection:
            connection.session().producer("A").send("to one")
        one.advance("1h")
        with connect(other.url) as connection:
            assert bodies(connection, "A") == []
        assert one.now - other.now == pytest.approx(3600, abs=60)


def test_nothing_is_left_behind() -> None:
    with InProcessBroker() as broker:
        home = broker.directory.parent
        assert home.exists()
    assert not home.exists()


def test_a_configuration_without_a_broker_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("")
    with pytest.raises(RefusedConfigurationError, match=r"empty.yaml: expected one Broker"):
        InProcessBroker(file)


@pytest.mark.parametrize("duration", ["6", "soon", "-1h"])
def test_a_duration_that_nobody_can_read_is_refused(
    lockkeeper_broker: InProcessBroker, duration: str
) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        lockkeeper_broker.advance(duration)
