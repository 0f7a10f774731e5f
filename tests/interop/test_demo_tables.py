"""What the tables say of the journal that the demo leaves, ActiveMQ says of it, too.

`LOCKKEEPER_DEMO_DEPARTURES=0` takes all departures, as `make demo` does.
"""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import brokers
import contents
import pyarrow as pa
import pytest
from ports import free_port

from lockkeeper.client import connect
from lockkeeper.message.openwire import Message
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

DEPARTURES = os.environ.get("LOCKKEEPER_DEMO_DEPARTURES", "20000")
DEMO = Path(__file__).parents[2] / "demo" / "run.py"
REPLAY_SECONDS_MAX, CLEANUP_SECONDS_MAX, QUIET_SECONDS = 300.0, 20.0, 3.0
QUEUES = [f"{prefix}DEPARTURES.{origin}" for prefix in ("", "DLQ.") for origin in ("EWR", "JFK")]
QUEUES += ["DEPARTURES.LGA", "DLQ.DEPARTURES.LGA"]
Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the demo's two masters wrote, one after the other."""
    reason = brokers.missing("activemq")
    if reason:
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("demo") / "run"
    command = [sys.executable, str(DEMO), "--no-report", "--directory", str(place)]
    done = subprocess.run([*command, "--departures", DEPARTURES], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 missing" in done.stdout
    return place / "journal"


@pytest.fixture(scope="module")
def rows(journal: Path) -> Rows:
    """A function that returns the rows of one table of the demo's journal."""

    def read(table: str, columns: str) -> list[dict[str, Any]]:
        asked = parse_options({"path": str(journal), "table": table, "columns": columns})
        batches = list(TABLES[table].batches(asked))
        return pa.Table.from_batches(batches).to_pylist() if batches else []

    return read


@pytest.fixture(scope="module")
def activemq(
    journal: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[brokers.RunningBroker]:
    """ActiveMQ over a copy of the journal, which it cleans up as it does."""
    place = tmp_path_factory.mktemp("theirs")
    shutil.copytree(journal, place / "kahadb", ignore=shutil.ignore_patterns("lock"))
    port = free_port()
    command = brokers.activemq_command(place / "home", port, place, cleanup_ms=300)
    running = brokers.RunningBroker("activemq", port, place, command, waits=False)
    # It makes its index anew from the journal before it listens.
    deadline = time.monotonic() + REPLAY_SECONDS_MAX
    while not brokers.accepts(port):
        assert running.process.poll() is None and time.monotonic() < deadline, running.log
        time.sleep(0.2)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def files(rows: Rows, activemq: brokers.RunningBroker) -> tuple[set[str], set[str]]:
    """The data files that a clean-up leaves, by the table, and those that ActiveMQ's left."""
    told = rows("files", "file,freed_by_cleanup,is_archived")
    ours = {row["file"] for row in told if not row["is_archived"]}
    kept = {row["file"] for row in told if row["file"] in ours and not row["freed_by_cleanup"]}
    deadline = time.monotonic() + CLEANUP_SECONDS_MAX
    theirs: set[str] = set()
    while theirs != kept and time.monotonic() < deadline:
        # It writes to files of its own.
        theirs = ours & {path.name for path in (activemq.directory / "kahadb").glob("db-*.log")}
        time.sleep(0.3)
    return kept, theirs


@pytest.fixture(scope="module")
def served(
    activemq: brokers.RunningBroker, files: tuple[set[str], set[str]]
) -> dict[str, list[Message]]:
    """What ActiveMQ serves, by queue, in its order; it is gone then, and so are its *files*."""
    found: dict[str, list[Message]] = defaultdict(list)
    with connect(activemq.url) as connection:
        consumer = connection.session().consumer(">")
        while (message := consumer.receive(QUIET_SECONDS)) is not None:
            assert message.destination is not None
            found[message.destination.name].append(message.fields)
    return found


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def key(message: Message) -> str:
    """What the journal knows a message by; a dead letter shows its first JMSMessageID instead."""
    assert message.message_id is not None
    return message.message_id.producer_key


def facts_of(message: Message) -> tuple[Any, ...]:
    shown, producer = str(message.message_id), str(message.producer_id)
    return (key(message), shown, producer, message.persistent, message.timestamp)


def test_messages_that_wait_are_those_activemq_serves(
    rows: Rows, served: dict[str, list[Message]]
) -> None:
    told: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    columns = "destination,outcome,message_id,copy_of,producer_id,persistent,sent_at"
    for row in rows("messages", columns):
        if row["outcome"] == "pending":
            shown = row["copy_of"] or row["message_id"]
            sent_at = milliseconds(row["sent_at"])
            facts = (row["message_id"], shown, row["producer_id"], row["persistent"], sent_at)
            told[row["destination"]].append(facts)
    assert told.keys() == served.keys()
    for name, messages in served.items():
        assert told[name] == [facts_of(each) for each in messages], name
    assert sum(map(len, told.values())) > 100


def test_every_message_is_there_or_ended(rows: Rows, served: dict[str, list[Message]]) -> None:
    waiting = {(name, key(each)) for name, found in served.items() for each in found}
    acks = {
        (row["destination"], row["message_id"]) for row in rows("acks", "destination,message_id")
    }
    messages = rows("messages", "destination,message_id,outcome")
    stored = {
        (row["destination"], row["message_id"])
        for row in messages
        if row["outcome"] not in ("rolled_back", "open")
    }
    assert not acks & waiting
    assert acks | waiting == stored


def test_destinations_count_what_activemq_serves(
    rows: Rows, served: dict[str, list[Message]]
) -> None:
    found = {row["destination"]: row for row in rows("destinations", "")}
    assert sorted(found) == sorted(QUEUES)
    for name, row in found.items():
        messages = served.get(name, [])
        assert (row["pending"], row["in_doubt"]) == (len(messages), 0), name
        # One that came in before may have been committed behind it.
        first = messages[0].broker_in_time if messages else None
        told = row["oldest_pending_at"]
        assert (None if told is None else milliseconds(told)) == first
    outcomes = Counter(row["outcome"] for row in rows("messages", "outcome"))
    assert sum(row["pending"] for row in found.values()) == outcomes["pending"]
    assert sum(row["dead_lettered"] for row in found.values()) == outcomes["dead_lettered"]


def test_nothing_is_prepared_and_nobody_subscribed(
    rows: Rows, activemq: brokers.RunningBroker
) -> None:
    outcomes = {row["outcome"] for row in rows("transactions", "outcome")}
    assert contents.in_doubt(activemq.port) == [] and "prepared" not in outcomes
    assert "committed" in outcomes
    assert rows("subscriptions", "") == []


def test_files_that_stay_are_those_that_activemq_keeps(
    rows: Rows, files: tuple[set[str], set[str]], served: dict[str, list[Message]]
) -> None:
    kept, theirs = files
    assert theirs == kept
    live: Counter[str] = Counter()
    for row in rows("files", "live_by_destination"):
        live.update(dict(row["live_by_destination"] or {}))
    assert live == {f"queue://{name}": len(found) for name, found in served.items()}


def test_the_recorders_figures_are_those_of_the_journal(rows: Rows) -> None:
    """ActiveMQ knows nothing of these tables; the other tables do."""
    killed = [row["event"] for row in rows("events", "event") if row["event"] == "takeover"]
    assert len(killed) == 1
    statistics = rows("statistics", "destination,depth,at")
    last = {row["destination"]: row["depth"] for row in statistics}
    found = {row["destination"]: row["pending"] for row in rows("destinations", "")}
    assert last == {name: found[name] for name in last}
    assert last.keys() >= {"DEPARTURES.EWR", "DEPARTURES.JFK", "DEPARTURES.LGA"}
