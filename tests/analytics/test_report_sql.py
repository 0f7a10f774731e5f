"""Each report says the same in SQL as its data frame does, of ActiveMQ's journals and of ours."""

import re
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from journal_maker import START, JournalMaker, transaction

from lockkeeper.client import Acknowledge, connect
from lockkeeper.journal.records import Prepare, Subscription
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import SubscriptionInfo, encode
from lockkeeper_analytics.facts.journal import journal_of, read_records, settled
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.sql.views import view_texts

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

import brokers

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ACTIVEMQ = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")
PERCENTILE = re.compile(r"p\d+_")
NEWS, DLQ = topic("NEWS"), queue("DLQ")


def made(directory):
    """Two runs of a broker: statistics, a take-over, transactions, a topic, a dead letter."""
    maker = JournalMaker(directory)
    maker.line("event", 0, event="start", broker="b", replica="b-0", epoch=1).flush()
    info = encode(SubscriptionInfo(client_id="c", subscription_name="early", destination=NEWS), 11)
    framed = len(info).to_bytes(4, "big") + info
    maker.record(Subscription(NEWS, "c:early", False, framed))
    for number in range(1, 41):
        maker.add(number, 10 * number).clock(10 * number).flush()
    for number in range(1, 31):
        maker.remove(number).clock(500 + number * number).flush()
    maker.add(50, 1500, NEWS).add(51, 1510, NEWS).remove(50, NEWS, subscription="c:early")
    maker.add(60, 1520, tx=transaction(1)).add(61, 1520, tx=transaction(1)).clock(1520)
    maker.commit(transaction(1)).add(62, 1530, tx=transaction(2)).rollback(transaction(2)).flush()
    counts = {"enqueued": 45, "dequeued": 33, "dispatched": 50, "redelivered": 4}
    latency = [3, 0, 8, 12, 10]
    maker.statistics(2000, **counts, neverWritten=3, depth=12, latency=latency).flush()
    maker.roll().add(63, 2100).clock(2100).flush().remove(31).clock(2150).flush()
    cause = "the lock was free"
    fields = {"broker": "b", "replica": "b-1", "epoch": 2, "cause": cause}
    maker.line("event", 9000, event="takeover", **fields).clock(9000).flush()
    dead = {"properties": {"dlqDeliveryFailureCause": "no stock for ID:maker-1:1:1:1:32, sorry"}}
    maker.remove(32).add(32, 9100, DLQ, original_destination=queue("ORDERS"), **dead).clock(9100)
    maker.remove(60, tx=transaction(3)).record(Prepare(transaction(3))).flush()
    counts = {"enqueued": 4, "dequeued": 1, "deadLettered": 1, "dispatched": 6, "redelivered": 2}
    maker.statistics(12_000, **counts, latency=[0, 0, 1]).clock(12_010).flush()
    maker.line("event", 12_500, event="stop", broker="b", replica="b-1").flush()


def used(folder):
    """Let clients use a broker: acknowledged, rejected, rolled back, kept; then kill it."""
    port = brokers.free_port()
    command = brokers.lockkeeper_command(folder, port)
    broker = brokers.RunningBroker("lockkeeper", port, folder, command)
    with connect(broker.url, client_id="clerk") as connection:
        session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
        producer = session.producer("ORDERS")
        for number in range(30):
            producer.send(f"order {number}" * (1 + number))
        consumer = session.consumer("ORDERS", prefetch=10)
        for _ in range(20):
            consumer.receive(5).acknowledge()
        session.reject(consumer.receive(5), "no such customer")
        transacted = connection.session(transacted=True)
        transacted.producer("OTHER").send("undone")
        transacted.rollback()
        transacted.producer("OTHER").send("done")
        transacted.commit()
    broker.stop()
    broker.start()
    with connect(broker.url) as connection:
        connection.session().producer("OTHER").send("before the crash")
    broker.kill()
    return next(path.parent for path in folder.rglob("db-1.log"))


@pytest.fixture(scope="module", params=["ActiveMQ's", "ours"])
def journal(request, spark, tmp_path_factory):
    """A journal of several directories, and these."""
    folder = tmp_path_factory.mktemp("journals")
    if request.param == "ours":
        made(folder / "made")
        (folder / "used").mkdir()
        places = [folder / "made", used(folder / "used")]
    else:
        places = [request.path.parents[1] / "golden" / "kahadb" / name for name in ACTIVEMQ]
    directories = list(map(str, places))
    frames = settled(journal_of(read_records(spark, directories)), folder / "frames")
    return frames, directories


def plain(value):
    """Return *value* as both say it: numbers as such, times in ms."""
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return value


def comparable(rows):
    """Return *rows* in an order that does not depend on percentiles and fractions."""
    plainly = [{name: plain(value) for name, value in row.items()} for row in rows]
    return sorted(plainly, key=lambda row: [str(each) for each in row.values() if is_exact(each)])


def is_exact(value):
    return not isinstance(value, float)


def is_same(name, value, other):
    if value is None or other is None or isinstance(value, str | bool | list | dict):
        return value == other
    if PERCENTILE.match(name):
        return value == pytest.approx(other, rel=0.02, abs=1)
    return value == pytest.approx(other, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_and_its_sql_say_the_same(journal, name):
    frames, directories = journal
    table = REPORTS[name].frame(frames).toArrow()
    options = {"path": ",".join(directories)}
    batches = list(query.run(REPORTS[name].sql, options))
    assert batches[0].schema.names == table.schema.names
    asked = comparable(row for batch in batches for row in batch.to_pylist())
    expected = comparable(table.to_pylist())
    assert len(asked) == len(expected)
    for row, other in zip(asked, expected, strict=True):
        wrong = [each for each in row if not is_same(each, row[each], other[each])]
        assert not wrong, {each: (row[each], other[each]) for each in wrong} | {"of": other}
    assert_the_page_finds_its_columns(REPORTS[name], set(table.column_names))


def test_what_records_hold_whole_adds_no_cells_to_the_rates(spark, tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    maker.line("event", 0, event="start", broker="b", replica="b-0", epoch=1).flush()
    maker.add(1, 10).clock(10).flush().statistics(2000, enqueued=1, depth=1).flush()
    maker.add(2, 9000).clock(9000).flush().statistics(12_000, enqueued=2, depth=2).flush()
    directory = str(maker.directory)
    place = (directory, "queue", "ORDERS")
    expected = [(*place, START + at, 1.0, 0.0, 0.0, 0.0, 1) for at in (0, 9000)]
    table = REPORTS["rates"].frame(journal_of(read_records(spark, [directory]))).toArrow()
    asked = list(query.run(REPORTS["rates"].sql, {"path": directory}))
    for batches in ([table], asked):
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert [tuple(map(plain, row.values())) for row in rows] == expected


def assert_the_page_finds_its_columns(report, names):
    """Columns, plots and the page's own choice of rows name columns that there are."""
    for column in report.columns:
        assert {column.name, *(column.bounds or ()), *(column.ends or ())} <= names
    if report.plot is not None:
        fields = ("values", "each", "names", "down")
        told = [each for field in fields for each in getattr(report.plot, field, ())]
        assert {getattr(each, "column", each) for each in told} <= names
    assert f"{report.name}_report" in view_texts()
