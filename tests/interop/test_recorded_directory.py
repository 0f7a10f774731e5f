"""What the flight recorder writes leaves ActiveMQ unmoved: it opens such a journal as it is."""

import json
import re
import time
from pathlib import Path

import brokers
import pytest
from ports import free_port

from lockkeeper.client import Acknowledge, connect

pytestmark = [pytest.mark.interop, pytest.mark.slow]

RESOURCE = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: recorded}}
spec:
  listeners: [{{name: openwire, port: {port}}}]
  admin: {{port: 0}}
  journal:
    cleanupInterval: 1h
    recorder: {{statisticsInterval: 100ms, clockInterval: 1ms}}
"""
RECORDED_SECONDS_MAX = 20.0
EVENTS = {
    "start",
    "configuration",
    "connectionOpened",
    "connectionClosed",
    "consumerOpened",
    "consumerClosed",
    "producerOpened",
    "producerClosed",
}


def use(url: str) -> None:
    """Let clients come, send, consume, subscribe and go, so that all of it is recorded."""
    for number in range(5):
        with connect(url, client_id=f"client-{number}") as connection:
            session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
            session.producer("RECORDED").send_many(f"{number}-{index}" for index in range(20))
            consumer = session.consumer("RECORDED", prefetch=10)
            for _ in range(5):
                message = consumer.receive(5)
                assert message is not None
                message.acknowledge()


def browsed(url: str) -> list[str]:
    """Return what waits in the queue, sorted: given-back messages may stand elsewhere for each."""
    with connect(url) as connection:
        return sorted(str(each.body) for each in connection.session().browse("RECORDED"))


def recorded(directory: Path) -> tuple[set[str], set[str]]:
    """Return the kinds of lines and of events in a journal, found by their looks alone."""
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("db-*.log")))
    kinds, events = set(), set()
    for found in re.finditer(rb'lk1 (\{"t":"(?:clock|event)"[^{}]*\})', data):
        line = json.loads(found[1])
        kinds.add(line["t"])
        events.add(line.get("event", ""))
    return kinds | ({"stats"} if b'lk1 {"t":"stats"' in data else set()), events


def have_statistics_written(url: str, directory: Path) -> None:
    """Send elsewhere until there are statistics: they come after a while, with other writes."""
    deadline = time.monotonic() + RECORDED_SECONDS_MAX
    with connect(url) as connection:
        producer = connection.session().producer("ELSEWHERE")
        while "stats" not in recorded(directory)[0]:
            assert time.monotonic() < deadline, "no statistics came"
            producer.send("something to write")
            time.sleep(0.1)


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


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_activemq_serves_a_recorded_directory_and_hands_it_back(
    activemq: tuple[int, list[str]], tmp_path: Path, end: str
) -> None:
    directory, port = tmp_path / "kahadb", free_port()
    resource = tmp_path / "broker.yaml"
    resource.write_text(RESOURCE.format(port=port))
    command = [*brokers.LOCKKEEPER, "broker", "-f", str(resource), "--data", str(directory)]
    ours = brokers.RunningBroker("lockkeeper", port, tmp_path / "ours", command)
    theirs = None
    try:
        use(ours.url)
        kept = browsed(ours.url)
        have_statistics_written(ours.url, directory)
        getattr(ours, end)()
        kinds, events = recorded(directory)
        assert kinds == {"clock", "stats", "event"} and events >= EVENTS
        assert len(kept) == 75
        theirs = brokers.RunningBroker("activemq", activemq[0], tmp_path / "theirs", activemq[1])
        assert browsed(theirs.url) == kept
        with connect(theirs.url) as connection:
            connection.session().producer("RECORDED").send("theirs")
        theirs.stop()
        assert brokers.complaints(theirs) == []
        ours.start()
        assert browsed(ours.url) == [*kept, "theirs"]
        ours.stop()
        assert recorded(directory)[1] >= EVENTS
    finally:
        ours.kill()
        if theirs is not None:
            theirs.kill()
