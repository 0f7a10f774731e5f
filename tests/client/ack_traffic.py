"""Acknowledgements as they are on the wire, of our client and of Java's, for the same steps.

A case is a line of steps, which `Ours` does and, in Java, tests/interop/java's AckTraffic. A relay
records what the client says and what it is sent. java_acks.json has what Java's says, written by
record_java_acks.py.
"""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import brokers
from client_support import Connect
from relay import Relay, commands_in

from lockkeeper.client import Acknowledge, Consumer, ReceivedMessage, connect
from lockkeeper.message import openwire
from lockkeeper.message.openwire import (
    DELIVERED_NOTHING,
    DELIVERED_UNKNOWN,
    AckType,
    MessageAck,
    Structure,
    TransactionOperation,
)

HERE = Path(__file__).parent
RECORDED = HERE / "java_acks.json"
JAVA_PROJECT = HERE.parent / "interop" / "java"
SECONDS_MAX = 60
NO_SILENCE = "wireFormat.maxInactivityDuration=0"
AT_ONCE = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
OF_JAVA = "wireFormat.cacheEnabled=false&wireFormat.tightEncodingEnabled=false"
OF_JAVA += f"&jms.watchTopicAdvisories=false&{NO_SILENCE}"


WITHIN = " in transaction"


class Case(NamedTuple):
    """What is done; destinations are named by `{q}`, of which nobody else has one."""

    mode: str
    destinations: str
    steps: str
    options: str = "jms.prefetchPolicy.all=10"


OPTIMIZED = "jms.prefetchPolicy.all=20&jms.optimizeAcknowledge=true"
OPTIMIZED += "&jms.optimizeAcknowledgeTimeOut=60000"
ONCE_MORE = f"jms.prefetchPolicy.all=10&jms.redeliveryPolicy.maximumRedeliveries=1&{AT_ONCE}"
AGAIN = f"jms.prefetchPolicy.all=10&{AT_ONCE}"
PULLED = f"jms.prefetchPolicy.all=0&{AT_ONCE}"
SINGLE = f"jms.prefetchPolicy.all=1&{AT_ONCE}"

CASES = {
    "auto": Case("AUTO", "{q}", "send:4 receive:3 close"),
    "auto-listener": Case("AUTO", "{q}", "send:4 listen:4 close"),
    "auto-failing-listener": Case("AUTO", "{q}", "send:2 listen:3:1 close", AGAIN),
    "auto-poison": Case("AUTO", "{q}", "send:2 listen:3:2 close", ONCE_MORE),
    "auto-expired": Case("AUTO", "{q}", "send-short:2 sleep:400 poll close"),
    "auto-prefetch-1": Case("AUTO", "{q}", "send:3 receive:3 close", SINGLE),
    "auto-pulled": Case("AUTO", "{q}", "poll wait:200 send:2 receive:2 poll close", PULLED),
    "auto-topic": Case("AUTO", "topic://{q}", "send:4 receive:3 close"),
    "auto-durable": Case("AUTO", "durable:{q}", "send:4 receive:3 close"),
    "optimized": Case("AUTO", "{q}", "send:16 receive:15 close", OPTIMIZED),
    "optimized-listener": Case("AUTO", "{q}", "send:16 listen:16 close", OPTIMIZED),
    "optimized-topic": Case("AUTO", "topic://{q}", "send:16 receive:15 close", OPTIMIZED),
    "optimized-durable": Case("AUTO", "durable:{q}", "send:16 receive:15 close", OPTIMIZED),
    "dups-ok": Case("DUPS_OK", "{q}", "send:4 receive:3 close"),
    "dups-ok-topic": Case("DUPS_OK", "topic://{q}", "send:13 receive:12 close"),
    "dups-ok-topic-listener": Case("DUPS_OK", "topic://{q}", "send:12 listen:12 close"),
    "client": Case("CLIENT", "{q}", "send:14 receive:12 acknowledge:3 close"),
    "client-twice": Case(
        "CLIENT", "{q}", "send:14 receive:3 acknowledge:2 receive:4 acknowledge:6 close"
    ),
    "client-listener": Case("CLIENT", "{q}", "send:12 listen:12 close"),
    "client-unacknowledged": Case("CLIENT", "{q}", "send:5 receive:3 close"),
    "client-two-consumers": Case(
        "CLIENT",
        "{q},{q}.OTHER",
        "send:2 send:2:1 receive:2 receive:1:1 acknowledge:0 close:0 close:1",
    ),
    "client-recover": Case(
        "CLIENT", "{q}", "send:4 receive:3 recover receive:3 acknowledge:5 close", AGAIN
    ),
    "client-recover-twice": Case(
        "CLIENT",
        "{q}",
        "send:2 receive:2 recover receive:1 recover receive:2 acknowledge:4 close",
        AGAIN,
    ),
    "client-poison": Case(
        "CLIENT",
        "{q}",
        "send:2 receive:1 recover receive:1 recover receive:1 acknowledge:2 close",
        ONCE_MORE,
    ),
    "client-prefetch-1": Case("CLIENT", "{q}", "send:3 receive:3 acknowledge:2 close", SINGLE),
    "client-pulled": Case("CLIENT", "{q}", "send:3 receive:2 acknowledge:1 close", PULLED),
    "client-topic": Case("CLIENT", "topic://{q}", "send:7 receive:6 acknowledge:5 close"),
    "individual": Case("INDIVIDUAL", "{q}", "send:4 receive:4 acknowledge:2 acknowledge:0 close"),
    "individual-many": Case(
        "INDIVIDUAL",
        "{q}",
        "send:14 receive:7 acknowledge:0 acknowledge:1 receive:5 acknowledge:2 close",
    ),
    "individual-recover": Case(
        "INDIVIDUAL",
        "{q}",
        "send:3 receive:3 acknowledge:1 recover receive:2 acknowledge:3 close",
        AGAIN,
    ),
    "transacted": Case("TRANSACTED", "{q}", "send:9 receive:7 commit receive:1 commit close"),
    "transacted-empty": Case("TRANSACTED", "{q}", "poll commit poll rollback close"),
    "transacted-rollback": Case(
        "TRANSACTED", "{q}", "send:3 receive:2 rollback receive:2 commit close", AGAIN
    ),
    "transacted-rollback-twice": Case(
        "TRANSACTED",
        "{q}",
        "send:2 receive:1 rollback receive:1 rollback receive:1 commit close",
        AGAIN,
    ),
    "transacted-poison": Case(
        "TRANSACTED",
        "{q}",
        "send:2 receive:1 rollback receive:1 rollback receive:1 commit close",
        ONCE_MORE,
    ),
    "transacted-closed-before": Case("TRANSACTED", "{q}", "send:3 receive:2 close commit"),
    "transacted-prefetch-1": Case(
        "TRANSACTED", "{q}", "send:3 receive:2 commit receive:1 commit close", SINGLE
    ),
    "transacted-pulled": Case(
        "TRANSACTED",
        "{q}",
        "send:3 receive:2 commit receive:1 rollback receive:1 commit close",
        PULLED,
    ),
    "transacted-listener": Case("TRANSACTED", "{q}", "send:6 listen:6 commit close"),
    "transacted-durable": Case("TRANSACTED", "durable:{q}", "send:6 receive:5 commit close"),
}


class Ours:
    """Does the steps of a case with our client, over a relay."""

    def __init__(self, case: Case, name: str, broker_url: str, face: Connect) -> None:
        self._case = case
        self._face = face
        self._names = case.destinations.format(q=name).split(",")
        self._broker_url = broker_url
        self._received: list[ReceivedMessage] = []

    def run(self, relay_url: str) -> None:
        names = [name.replace("durable:", "topic://") for name in self._names]
        is_durable = self._names[0].startswith("durable:")
        mode = Acknowledge[self._case.mode]
        client_id = "ours" if is_durable else None
        url = f"{relay_url}?{self._case.options}&{NO_SILENCE}"
        with self._face(url, client_id=client_id) as connection:
            is_transacted = mode is Acknowledge.TRANSACTED
            self._session = connection.session(acknowledge=mode, transacted=is_transacted)
            subscription = "subscription" if is_durable else None
            self._consumers = [
                self._session.consumer(name, subscription_name=subscription) for name in names
            ]
            for step in self._case.steps.split():
                kind, *numbers = step.split(":")
                self._step(kind, [int(each) for each in numbers])

    def _step(self, kind: str, numbers: list[int]) -> None:
        number, which, *_ = [*numbers, 0, 0]
        consumer = self._consumers[number if kind == "close" else 0 if kind == "listen" else which]
        match kind:
            case "send" | "send-short":
                self._send(self._names[which], number, 0.2 if kind == "send-short" else None)
            case "receive":
                for _ in range(number):
                    message = consumer.receive(SECONDS_MAX)
                    assert message is not None
                    self._received.append(message)
            case "poll":
                assert consumer.receive(0) is None
            case "wait":
                assert consumer.receive(number / 1000) is None
            case "listen":
                _listen(consumer, number, which)
            case "acknowledge":
                self._received[number].acknowledge()
            case "commit":
                self._session.commit()
            case "rollback":
                self._session.rollback()
            case "recover":
                self._session.recover()
            case "sleep":
                time.sleep(number / 1000)
            case "close":
                consumer.close()

    def _send(self, name: str, count: int, time_to_live: float | None) -> None:
        with connect(self._broker_url) as connection:
            producer = connection.session().producer(
                name.replace("durable:", "topic://"), time_to_live=time_to_live
            )
            producer.send_many([str(number) for number in range(count)])


def _listen(consumer: Consumer, calls: int, failures: int) -> None:
    begun = threading.Semaphore(0)
    left = [failures]

    def listener(message: ReceivedMessage) -> None:
        begun.release()
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError("on purpose")

    consumer.listen(listener)
    for _ in range(calls):
        assert begun.acquire(timeout=SECONDS_MAX)
    time.sleep(0.1)


class Javas:
    """Does the steps of cases with Java's client, in one process."""

    def __init__(self, class_path: str) -> None:
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path]
        self._process = subprocess.Popen(
            [*command, "dev.lockkeeper.interop.AckTraffic"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def run(self, case: Case, name: str, broker_url: str, relay_url: str) -> None:
        """Do the steps of a case. Raises AssertionError with what went wrong."""
        consuming = f"{relay_url}?{case.options}&{OF_JAVA}"
        names = case.destinations.format(q=name)
        line = f"{broker_url} {consuming} {case.mode} {names} {case.steps}"
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        report = self._process.stdout.readline().strip()
        assert report == "done", report

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


# What was said


def traffic(relay: Relay, connection: int = 0) -> list[str]:
    """Return what a client has said of consumers, messages and transactions, one line a frame."""
    arrived: dict[object, int] = {DELIVERED_NOTHING: -1, DELIVERED_UNKNOWN: -2}
    for told in commands_in(bytes(relay.told[connection])):
        if isinstance(told, openwire.MessageDispatch) and told.message is not None:
            identifier = told.message.message_id
            assert identifier is not None
            number = arrived.setdefault(str(identifier), (len(arrived) - 1) // 2)
            arrived[identifier.broker_sequence] = number
    said = commands_in(bytes(relay.sent[connection]))
    consumers: dict[object, int] = {}
    return [line for each in said for line in _lines(each, arrived, consumers)]


def _lines(
    said: Structure, arrived: dict[object, int], consumers: dict[object, int]
) -> Iterator[str]:
    match said:
        case openwire.ConsumerInfo():
            number = consumers.setdefault(str(said.consumer_id), len(consumers))
            optimized = " optimized" if said.optimized_acknowledge else ""
            yield f"consumer {number}, prefetch {said.prefetch_size}{optimized}"
        case openwire.MessagePull():
            waits = {-1: "not at all", 0: "for ever"}.get(said.timeout, "a while")
            yield f"{consumers[str(said.consumer_id)]} pulls, waits {waits}"
        case MessageAck():
            first = said.first_message_id and arrived[str(said.first_message_id)]
            last = arrived[str(said.last_message_id)]
            kind = AckType(said.ack_type).name
            number = consumers[str(said.consumer_id)]
            within = WITHIN if said.transaction_id is not None else ""
            yield f"{number} {kind} {first} to {last}, {said.message_count} messages{within}"
        case openwire.TransactionInfo():
            yield TransactionOperation(said.type).name
        case openwire.RemoveInfo(object_id=openwire.ConsumerId()):
            last = arrived[said.last_delivered_sequence]
            yield f"{consumers[str(said.object_id)]} closes, was given up to {last}"


def recorded_by(case: Case, name: str, broker: brokers.RunningBroker, face: Connect) -> list[str]:
    """Return what one face of our client says in a case."""
    with Relay(broker.port) as relay:
        Ours(case, name, broker.url, face).run(relay.url)
        return traffic(relay)


def recorded_by_java(
    javas: Javas, case: Case, name: str, broker: brokers.RunningBroker
) -> list[str]:
    """Return what Java's client says in a case."""
    with Relay(broker.port) as relay:
        javas.run(case, name, broker.url, relay.url)
        return traffic(relay)


def recorded() -> dict[str, list[str]]:
    """Return what Java's client said when it was recorded."""
    found: dict[str, list[str]] = json.loads(RECORDED.read_text("utf-8"))
    return found


def without_the_idle(lines: list[str]) -> list[str]:
    """Return what our client says where Java's says *lines*: only what a broker acts on.

    No broker does anything at REDELIVERED, nor at DELIVERED of a consumer that pulls. A transaction
    begins when it is committed: nothing is acknowledged that is rolled back, and DELIVERED, which
    is none of its parts, does not name it. docs/client.md says so.
    """
    pulls = lines[0].endswith("prefetch 0")
    kept: list[str] = []
    under_way: list[str] = []
    for line in lines:
        if "DELIVERED" in line:
            if "REDELIVERED" not in line and not pulls:
                kept.append(line.removesuffix(WITHIN))
        elif line.endswith(WITHIN):
            under_way.append(line)
        elif line == "ROLLBACK":
            under_way.clear()
        elif line == "COMMIT_ONE_PHASE":
            kept += ["BEGIN", *under_way, line]
            under_way.clear()
        elif line != "BEGIN":
            kept.append(line)
    return kept
