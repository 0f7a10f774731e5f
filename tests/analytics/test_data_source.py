"""The data source gives what the journals of a real ActiveMQ hold."""

import json
from collections import Counter
from pathlib import Path
from shutil import copytree

import pytest
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DIRECTORIES = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")
KINDS = {"add": "add", "remove": "remove", "commit": "commit", "prepare": "prepare"}


def listed(golden: Path, name: str) -> list[dict[str, object]]:
    """Return the records of a directory as an independent reader listed them."""
    lines = (golden / f"{name}.records.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == "rec"]


@pytest.mark.parametrize("name", DIRECTORIES)
def test_there_is_a_row_for_each_record(spark: SparkSession, golden: Path, name: str) -> None:
    rows = spark.read.format("lockkeeper").load(str(golden / name)).collect()
    expected = listed(golden, name)
    assert {(row.file, row.offset) for row in rows} == {
        (record["file"], record["offset"]) for record in expected
    }
    found = Counter(row.kind for row in rows)
    for command, kind in KINDS.items():
        wanted = sum(record["command"] == command for record in expected)
        assert found[kind] == wanted, command


def test_messages_are_what_was_sent(spark: SparkSession, golden: Path) -> None:
    reader = spark.read.format("lockkeeper").option("body", "true")
    records = reader.option("destination", "GOLD.TYPES").load(str(golden / DIRECTORIES[0]))
    rows = records.where("kind = 'add'").collect()
    assert rows
    assert {row.destination for row in rows} == {"GOLD.TYPES"}
    assert all(row.stored_at >= row.sent_at and row.persistent for row in rows)
    assert any(row.body for row in rows)
    assert any(row.properties for row in rows)


def test_only_the_columns_asked_for_are_there(spark: SparkSession, golden: Path) -> None:
    reader = spark.read.format("lockkeeper").option("columns", "kind,destination")
    records = reader.load(str(golden / DIRECTORIES[0]))
    assert records.columns == ["kind", "destination"]
    assert records.where("destination = 'GOLD.BULK'").count() > 0


def test_an_unknown_column_names_the_nearest(spark: SparkSession, golden: Path) -> None:
    reader = spark.read.format("lockkeeper").option("columns", "knd")
    with pytest.raises(Exception, match="kind"):
        reader.load(str(golden / DIRECTORIES[0])).collect()


def test_a_torn_tail_ends_the_read_at_the_last_whole_batch(
    spark: SparkSession, golden: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "live"
    copytree(golden / DIRECTORIES[0], directory)
    whole = spark.read.format("lockkeeper").load(str(directory)).count()
    last = max(directory.glob("db-*.log"), key=lambda path: int(path.stem[3:]))
    data = last.read_bytes()
    end = data.rindex(b"\x00\x00\x00\x1c\x02WRITE BATCH")
    last.write_bytes(data[: end + 40])
    torn = spark.read.format("lockkeeper").load(str(directory)).count()
    assert 0 < torn < whole
