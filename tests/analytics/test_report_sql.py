"""Each report says the same by Spark and by DuckDB, of ActiveMQ's journals and of ours."""

import sys
from functools import cache
from pathlib import Path

import pytest
from journal_maker import START, JournalMaker
from journal_two_runs import write_two_runs
from network_journals import grown
from report_rows import assert_same, plain
from streams_journal import write_streams

from lockkeeper.client import Acknowledge, connect
from lockkeeper_analytics.facts.journal import journal_of, read_journals, settled
from lockkeeper_analytics.reports import GROUPS, REPORTS
from lockkeeper_analytics.spark.questions import answers
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.texts import view_texts

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

import brokers
from ports import free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS_MAX = 10_000
ACTIVEMQ = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")


def used(folder):
    """Let clients use a broker: acknowledged, rejected, rolled back, kept; then kill it."""
    port = free_port()
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


def plain_ones(folder):
    """Write two journals of adds and removes alone: of all else Spark knows that it is absent."""
    for name, count in (("few", 20), ("many", 70)):
        maker = JournalMaker(folder / name)
        for number in range(count):
            maker.add(number, number * 1000)
            if number % 3:
                maker.remove(number)
            if number % 16 == 15:
                maker.flush().roll()
        maker.flush()
        yield maker.directory


@pytest.fixture(scope="module", params=["ActiveMQ's", "ours", "plain ones"])
def journal(request, spark, tmp_path_factory):
    """A journal of several directories, as rows of a report by its name, and these.

    Reports of a group are one query, as in a job. What ActiveMQ wrote is read as a small journal.
    """
    folder = tmp_path_factory.mktemp("journals")
    if request.param == "plain ones":
        places = list(plain_ones(folder))
    elif request.param == "ours":
        write_two_runs(folder / "made")
        (folder / "used").mkdir()
        write_streams(folder / "streams")
        made = [folder / "made", folder / "streams", used(folder / "used")]
        places = [*made, *grown(folder / "network")]
    else:
        places = [request.path.parents[1] / "golden" / "kahadb" / name for name in ACTIVEMQ]
    directories = list(map(str, places))
    is_small = request.param == "ActiveMQ's"
    frames = settled(read_journals(spark, directories), folder / "frames", is_small=is_small)

    @cache
    def told(group):
        questions = {each.name: frames.question(each.name) for each in GROUPS[group]}
        return answers(frames.frames.session, questions, ROWS_MAX)

    return told, directories


@pytest.mark.parametrize(
    ("group", "name"), [(group, each.name) for group in GROUPS for each in GROUPS[group]]
)
def test_a_report_and_its_sql_say_the_same(journal, group, name):
    told, directories = journal
    table = told(group)[name]
    options = {"path": ",".join(directories)}
    batches = list(query.run(REPORTS[name].sql, options))
    assert batches[0].schema.names == table.schema.names
    assert_same([row for batch in batches for row in batch.to_pylist()], table.to_pylist())
    assert_the_page_finds_its_columns(REPORTS[name], table)


def test_what_records_hold_whole_adds_no_cells_to_the_rates(spark, tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    maker.line("event", 0, event="start", broker="b", replica="b-0", epoch=1).flush()
    maker.add(1, 10).clock(10).flush().statistics(2000, enqueued=1, depth=1).flush()
    maker.add(2, 9000).clock(9000).flush().statistics(12_000, enqueued=2, depth=2).flush()
    directory = str(maker.directory)
    place = (directory, "queue", "ORDERS")
    expected = [(*place, START + at, 1.0, 0.0, 0.0, 0.0, 1, False) for at in (0, 9000)]
    table = journal_of(read_journals(spark, [directory])).report("rates").toArrow()
    asked = list(query.run(REPORTS["rates"].sql, {"path": directory}))
    for batches in ([table], asked):
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert [tuple(map(plain, row.values())) for row in rows] == expected


def assert_the_page_finds_its_columns(report, table):
    """Columns, plots and the page's own choice of rows name columns that there are."""
    names = set(table.column_names).union(*report.shown(table.to_pylist()))
    if table.num_rows:
        for column in report.columns:
            assert {column.name, *(column.bounds or ()), *(column.ends or ())} <= names
    for plot in report.plots:
        fields = ("values", "each", "names", "down")
        told = [each for field in fields for each in getattr(plot, field, ())]
        assert {getattr(each, "column", each) for each in told} <= names
    assert f"{report.name}_report" in view_texts()
