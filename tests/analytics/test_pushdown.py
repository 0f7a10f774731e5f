"""A query's filters spare reading, and never a row that it asks for."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from journal_maker import ORDERS, START, JournalMaker
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from lockkeeper.message.destination import queue, topic
from lockkeeper_analytics.spark.datasource import LockkeeperDataSource

PLACES = (ORDERS, queue("ORDERS.EU"), topic("NEWS"), queue("A*B"))


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    maker = JournalMaker(tmp_path_factory.mktemp("pushdown") / "journal")
    for number in range(60):
        place = PLACES[number % len(PLACES)]
        maker.add(number, number * 10, place)
        if number % 3 == 0:
            maker.remove(number, place)
        if number % 5 == 0:
            maker.clock(number * 10 + 1)
        if number % 7 == 0:
            maker.statistics(number * 10 + 2).line(
                "event", number * 10 + 3, event="slowConsumer", destination="queue://ORDERS"
            )
        maker.flush()
        if number % 9 == 8:
            maker.roll()
    return maker.directory


def read(directory, table, filters):
    options = {"path": str(directory), "table": table, "pushdown": "true"}
    reader = LockkeeperDataSource(options).reader(None)
    assert reader.pushFilters(filters) == filters
    pieces = reader.partitions()
    return pieces, [
        row for each in pieces for batch in reader.read(each) for row in batch.to_pylist()
    ]


def holds(each, row):
    """Tell what Spark says of a row; null is no."""
    value = row[each.attribute[0]]
    if isinstance(each, EqualNullSafe):
        return value == each.value
    if value is None:
        return False
    tests = {
        EqualTo: lambda: value == each.value,
        In: lambda: value in each.value,
        GreaterThan: lambda: value > each.value,
        GreaterThanOrEqual: lambda: value >= each.value,
        LessThan: lambda: value < each.value,
        LessThanOrEqual: lambda: value <= each.value,
    }
    return tests[type(each)]()


def kept(rows, filters):
    return [row for row in rows if all(holds(each, row) for each in filters)]


def moment(at):
    return datetime.fromtimestamp(START / 1000, UTC) + timedelta(milliseconds=at)


CASES = [
    ("records", [EqualTo(("destination",), "ORDERS")]),
    ("records", [EqualTo(("destination",), "A*B")]),
    ("records", [In(("destination",), ("ORDERS", "NEWS"))]),
    ("records", [EqualNullSafe(("destination",), "NEWS")]),
    ("records", [EqualTo(("kind",), "remove")]),
    ("records", [In(("kind",), ("add", "remove")), EqualTo(("kind",), "add")]),
    ("records", [GreaterThan(("file_id",), 3), LessThanOrEqual(("file_id",), 4)]),
    ("records", [In(("file_id",), (2, 5))]),
    ("records", [GreaterThanOrEqual(("written_after",), moment(200))]),
    ("records", [GreaterThan(("written_before",), moment(200))]),
    ("records", [LessThan(("written_after",), moment(333))]),
    ("records", [LessThanOrEqual(("written_before",), moment(331))]),
    ("messages", [EqualTo(("destination",), "ORDERS.EU")]),
    ("messages", [GreaterThan(("file_id",), 3)]),
    ("acks", [In(("destination",), ("NEWS",))]),
    ("files", [GreaterThan(("file_id",), 3)]),
    ("destinations", [EqualTo(("destination",), "ORDERS")]),
    ("statistics", [EqualTo(("destination",), "ORDERS"), GreaterThan(("at",), moment(300))]),
    ("events", [LessThanOrEqual(("at",), moment(143))]),
    ("events", [EqualTo(("destination",), "queue://ORDERS")]),
]


@pytest.mark.parametrize(("table", "filters"), CASES, ids=str)
def test_no_row_that_is_asked_for_is_missing(journal, table, filters):
    everything = read(journal, table, [])[1]
    found = read(journal, table, filters)[1]
    assert kept(found, filters) == kept(everything, filters)
    assert kept(found, filters)


def test_any_combination_keeps_what_it_asks_for(journal):
    chance = random.Random(7)
    everything = read(journal, "records", [])[1]
    for _ in range(40):
        several = [each for table, filters in CASES if table == "records" for each in filters]
        filters = chance.sample(several, chance.randint(2, 4))
        assert kept(read(journal, "records", filters)[1], filters) == kept(everything, filters)


def test_less_is_read(journal):
    everything, rows = read(journal, "records", [])
    pieces, _ = read(journal, "records", [EqualTo(("file_id",), 2)])
    assert [piece.value.file_id for piece in pieces] == [2] and len(everything) == 7
    _, removes = read(journal, "records", [EqualTo(("kind",), "remove")])
    assert {row["kind"] for row in removes} == {"remove"}
    _, late = read(journal, "records", [GreaterThan(("written_before",), moment(500))])
    assert 0 < len(late) < len(rows) / 4
    _, statistics = read(journal, "statistics", [LessThan(("at",), moment(100))])
    assert len(statistics) == 2


def test_filters_of_other_kinds_change_nothing(journal):
    rows = read(journal, "records", [])[1]
    filters = [
        IsNotNull(("destination",)),
        Not(EqualTo(("kind",), "add")),
        StringStartsWith(("destination",), "O"),
        EqualNullSafe(("destination",), None),
        EqualTo(("properties", "destination"), "ORDERS"),
    ]
    assert read(journal, "records", filters)[1] == rows


def test_what_the_options_ask_for_stays(journal):
    options = {"path": str(journal), "destination": "NEWS", "since": str(START + 400)}
    options["pushdown"] = "true"
    reader = LockkeeperDataSource(options).reader(None)
    before = reader.options
    reader.pushFilters(
        [EqualTo(("destination",), "ORDERS"), GreaterThan(("written_after",), moment(9))]
    )
    assert reader.options == before


def test_spark_takes_it_for_the_inherited_method_where_filters_stay_with_spark(journal):
    reader = LockkeeperDataSource({"path": str(journal)}).reader(None)
    assert reader.pushFilters.__func__ is DataSourceReader.pushFilters


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("enabled", ["true", "false"])
def test_spark_gives_the_same_answer_with_and_without(spark, journal, enabled):
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    assert before == "true"
    spark.conf.set(setting, enabled)
    try:
        frame = spark.read.format("lockkeeper").option("pushdown", "true").load(str(journal))
        found = frame.where("destination = 'ORDERS' and kind = 'add' and file_id between 2 and 3")
        assert [row.message_id.rpartition(":")[2] for row in found.collect()] == [
            "12",
            "16",
            "20",
            "24",
        ]
    finally:
        spark.conf.set(setting, before)


def test_filters_narrow_nothing_unless_it_is_asked_for(journal):
    reader = LockkeeperDataSource({"path": str(journal)}).reader(None)
    before = reader.options
    filters = [EqualTo(("kind",), "remove"), GreaterThan(("file_id",), 3)]
    assert reader.pushFilters(filters) == filters
    assert reader.options == before


@pytest.mark.spark
@pytest.mark.slow
def test_a_frame_that_a_query_uses_twice_is_whole_in_both(spark, journal):
    frame = spark.read.format("lockkeeper").load(str(journal))
    kinds = [row.kind for row in frame.select("kind").collect()]
    adds, removes = frame.where("kind = 'add'"), frame.where("kind = 'remove'")
    wanted = kinds.count("add") + kinds.count("remove")
    assert adds.unionByName(removes).count() == wanted
