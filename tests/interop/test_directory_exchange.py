"""One directory, written in turn by Lockkeeper and by ActiveMQ, each killed or stopped.

The load, and the ledger of what must be there, are those of the crash tests.
"""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import brokers
import pytest
from audit import audit, subscribe
from ledger import Ledger
from load import SUBSCRIBERS, place_of, start_all
from ports import free_port
from rounds import join

from lockkeeper.client import connect

pytestmark = [pytest.mark.interop, pytest.mark.slow]

OURS, THEIRS = "lockkeeper", "activemq"
FILE_BYTES = 65536
LOAD_SECONDS = 1.2
STANDBY_SECONDS = 4
TAKEOVER_SECONDS_MAX = 20
RESOURCE = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: exchange}}
spec:
  listeners: [{{name: openwire, port: {port}}}]
  admin: {{port: 0}}
  journal:
    fileBytes: {file_bytes}
    cleanupInterval: 100ms
    recorder: {{statisticsInterval: 100ms, clockInterval: 1ms}}
  locker: {{acquireInterval: 100ms}}
"""
Start = Callable[..., brokers.RunningBroker]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a broker, of either kind, on the one directory."""
    reason = brokers.missing(THEIRS)
    if reason:
        pytest.skip(reason)
    started: list[brokers.RunningBroker] = []

    def start_one(kind: str, waits: bool = True) -> brokers.RunningBroker:
        home = tmp_path / f"{len(started)}-{kind}"
        home.mkdir()
        command, port = _commands[kind], free_port()
        broker = brokers.RunningBroker(kind, port, home, command(home, port, tmp_path), waits)
        started.append(broker)
        return broker

    yield start_one
    for broker in started:
        broker.kill()


def _our_command(home: Path, port: int, data: Path) -> list[str]:
    resource = home / "broker.yaml"
    resource.write_text(RESOURCE.format(port=port, file_bytes=FILE_BYTES))
    directory = str(data / "kahadb")
    return [*brokers.LOCKKEEPER, "broker", "-f", str(resource), "--data", directory]


def _their_command(home: Path, port: int, data: Path) -> list[str]:
    return brokers.activemq_command(home, port, data, FILE_BYTES, cleanup_ms=300)


_commands = {OURS: _our_command, THEIRS: _their_command}


def work_and_end(broker: brokers.RunningBroker, ledger: Ledger, seed: str, end: str) -> None:
    """Put a broker under load; kill it in the midst of it, or stop it after it."""
    # A durable subscriber that comes while its topic is busy gets new messages before old ones
    # from ActiveMQ, which then forgets, when killed, that the new ones were acknowledged.
    crowd = start_all(ledger, broker.port, seed, subscribers_first=True)
    time.sleep(LOAD_SECONDS)
    if end == "kill":
        broker.kill()
        join(crowd)
    else:
        join(crowd)
        broker.stop()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_directory_goes_back_and_forth_with_nothing_lost(end: str, start: Start) -> None:
    seed = str(random.SystemRandom().randrange(10**6))
    print(f"seed {seed}")
    # After a clean stop ActiveMQ goes by its index, which it fills in another order than the
    # journal when several producers send at once.
    chance, ledger = random.Random(seed), Ledger(one_order=end == "kill")
    broker = start(OURS)
    subscribe(broker.port)
    for number, successor in enumerate((THEIRS, OURS)):
        work_and_end(broker, ledger, f"{seed}-{number}", end)
        predecessor, broker = broker.kind, start(successor)
        if predecessor == THEIRS:
            # ActiveMQ answers acknowledgements of durable subscribers before it writes them.
            ledger.doubt_removals(set(map(place_of, SUBSCRIBERS)))
        audit(ledger, broker.port, chance)
        print(f"{predecessor} -> {successor}: {dict(ledger.counts)}")
        assert not ledger.problems, f"{predecessor} -> {successor}: {ledger.problems[:10]}"
        # What the other one says of the same directory, with nothing done in between.
        broker.stop()
        broker = start(predecessor)
        audit(ledger, broker.port, chance)
        assert not ledger.problems, f"{successor} -> {predecessor}: {ledger.problems[:10]}"
        broker.stop()
        broker = start(successor)


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize(("first", "second"), [(OURS, THEIRS), (THEIRS, OURS)])
def test_the_standby_of_the_other_kind_waits_and_takes_over(
    first: str, second: str, end: str, start: Start
) -> None:
    master = start(first)
    with connect(master.url) as connection:
        connection.session().producer("KEPT").send_many(map(str, range(100)))
    standby = start(second, waits=False)
    time.sleep(STANDBY_SECONDS)
    assert standby.process.poll() is None and not brokers.accepts(standby.port)
    with connect(master.url) as connection:
        connection.session().producer("KEPT").send("after all")
    getattr(master, end)()
    began = time.monotonic()
    standby.wait()
    assert time.monotonic() - began < TAKEOVER_SECONDS_MAX
    with connect(standby.url) as connection:
        kept = [message.body for message in connection.session().browse("KEPT")]
    assert kept == [*map(str, range(100)), "after all"]
