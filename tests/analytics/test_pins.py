"""A run whose executors may read a piece again reads what it saw, or says that it is gone."""

import gzip

import pytest
from journal_maker import JournalMaker, rows_of
from pyspark.sql import SparkSession

from lockkeeper.journal.batch import CONTROL_START, EOF_RECORD
from lockkeeper_analytics import job
from lockkeeper_analytics.errors import (
    AnalyticsError,
    ForeignFileError,
    GoneError,
    OptionError,
)
from lockkeeper_analytics.facts import journal
from lockkeeper_analytics.history import keeping
from lockkeeper_analytics.reading.partitions import journal_files, seen_of
from lockkeeper_analytics.reading.pins import may_grow, pins_in, sound_end, text_of, written_bytes
from lockkeeper_analytics.spark.pinning import pinned
from lockkeeper_analytics.tables.options import parse_options


@pytest.fixture
def maker(tmp_path):
    """Two files; behind the end of the second there is space prepared for later."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 1000).flush().remove(1).flush().roll().remove(2).flush().remove(3).flush()
    with maker.path.open("ab") as file:
        file.write(bytes(4096))
    return maker


def pins_of(directory):
    seen = seen_of(str(directory))
    ends = {file.path: sound_end(file.path) for file in may_grow(seen.files)}
    files = [file._replace(size=ends.get(file.path, file.size)) for file in seen.files]
    return text_of({str(directory): seen._replace(files=tuple(files))})


def goes_on(maker):
    """Write what a broker writes meanwhile: into the space it had prepared, and a new file."""
    data = maker.path.read_bytes()
    maker.path.write_bytes(data[: data.index(EOF_RECORD + bytes(4096)) + len(EOF_RECORD)])
    maker.add(4, 7000).remove(4).flush().roll().add(5, 8000).flush()


def test_what_was_seen_is_read_again_whatever_was_written_since(maker):
    whole, pins = rows_of(maker.directory), pins_of(maker.directory)
    assert rows_of(maker.directory, pinned=pins) == whole
    goes_on(maker)
    assert rows_of(maker.directory, pinned=pins) == whole
    assert len(rows_of(maker.directory)) == len(whole) + 3


@pytest.mark.parametrize(
    "foreign", [gzip.compress(bytes(9000), mtime=0), b"not a journal", b"\0\1"]
)
def test_a_last_file_that_is_none_of_a_journal_is_an_error_on_a_cluster_too(maker, foreign):
    whole = rows_of(maker.directory)
    maker.roll().path.write_bytes(foreign)
    pins = pins_of(maker.directory)
    for pinned_to in ({}, {"pinned": pins}):
        with pytest.raises(ForeignFileError, match=r"db-3\.log: .*does not begin as one"):
            rows_of(maker.directory, **pinned_to)
    assert rows_of(maker.directory, pinned=pins, corrupt="skip") == whole


def test_a_last_file_in_which_nothing_is_written_yet_is_none(maker):
    whole = rows_of(maker.directory)
    for prepared in (bytes(4096), EOF_RECORD + bytes(4096), CONTROL_START[:4]):
        maker.roll().path.write_bytes(prepared)
        pins = pins_of(maker.directory)
        maker.add(9, 9000).flush()
        assert rows_of(maker.directory, pinned=pins) == whole
        maker.path.unlink()


def test_executors_look_for_the_ends_of_what_may_grow(spark: SparkSession, maker):
    assert text_of(pinned(spark, [str(maker.directory)])) == pins_of(maker.directory)
    assert text_of(pins_in(pins_of(maker.directory))) == pins_of(maker.directory)


def test_a_file_that_was_archived_since_is_read_where_it_is(maker):
    whole, pins = rows_of(maker.directory), pins_of(maker.directory)
    archive = maker.directory / "data-archive"
    archive.mkdir()
    (maker.directory / "db-1.log").rename(archive / "db-1.log")
    assert rows_of(maker.directory, pinned=pins) == whole


def test_a_file_that_is_gone_or_shorter_ends_the_run(maker):
    pins = pins_of(maker.directory)
    maker.path.write_bytes(maker.path.read_bytes()[:100])
    with pytest.raises(
        GoneError, match=r"db-2\.log: the run had seen it with \d+ bytes, and has 100"
    ):
        rows_of(maker.directory, pinned=pins)
    (maker.directory / "db-1.log").unlink()
    with pytest.raises(
        GoneError, match=r"db-1\.log: the run had seen it and it is gone; run again"
    ):
        rows_of(maker.directory, pinned=pins)


def test_a_history_is_read_as_it_was_seen_whatever_was_kept_since(maker, tmp_path):
    def keep():
        keeping.keep(parse_options({"path": f"north={maker.directory}"}), str(tmp_path))

    keep()
    place = tmp_path / "broker=north"
    whole, pins = rows_of(place), pins_of(place)
    goes_on(maker)
    keep()
    assert rows_of(place, pinned=pins) == whole
    assert len(rows_of(place)) == len(whole) + 3
    (path,) = [file for file in place.rglob("*.parquet") if str(file) in pins]
    path.unlink()
    with pytest.raises(GoneError, match=rf"{path.name}: the run had seen it and it is gone"):
        rows_of(place, pinned=pins)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"pinned": "x"}, "not what a run saw"),
        ({"pinned": '{"a": [[1]]}'}, "not what a run saw"),
        ({"pinned": '{"a": {"files": []}}'}, "not what a run saw"),
        ({"pinned": "{}", "table": "messages"}, "rows of messages are not of parts"),
    ],
)
def test_other_pins_are_refused(tmp_path, options, complaint):
    with pytest.raises(OptionError, match=f"option pinned: {complaint}"):
        rows_of(tmp_path, **options)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("change", ["grows", "goes"])
def test_a_run_on_a_cluster_pins_what_it_reads(
    spark: SparkSession, maker, tmp_path, monkeypatch, change
):
    """Spark here stands for a cluster: what differs for the job is where executors write."""
    monkeypatch.setattr(job, "_is_here", lambda master: False)

    def pinning(*asked):
        pins = pinned(*asked)
        if change == "grows":
            goes_on(maker)
        else:
            (maker.directory / "db-1.log").unlink()
        return pins

    seen = len(rows_of(maker.directory))
    monkeypatch.setattr(journal, "pinned", pinning)

    def run():
        out = tmp_path / "report"
        return job.analyze([str(maker.directory)], out, reports=["inventory"], session=spark)

    if change == "grows":
        assert run().records == seen
    else:
        with pytest.raises(AnalyticsError, match=r"db-1\.log: the run had seen it and it is gone"):
            run()


def test_room_that_a_broker_has_prepared_is_not_written_to(maker, tmp_path):
    other = JournalMaker(tmp_path / "other").add(1, 1000).flush()
    other.path.write_bytes(other.path.read_bytes() + EOF_RECORD + bytes(32 * 1024 * 1024))
    journals = [journal_files(str(each.directory)) for each in (maker, other)]
    ends = [sound_end(file.path) for files in journals for file in files]
    assert len(ends) == 3
    assert written_bytes(journals, 16 * 1024 * 1024) == sum(ends)
    maker.path.unlink()
    assert written_bytes(journals, 16 * 1024 * 1024) == ends[0] + ends[2]


def test_files_that_no_broker_writes_to_say_enough(maker):
    maker.roll().add(4, 1000).flush()
    files = journal_files(str(maker.directory))
    assert sound_end(files[1].path) < files[1].size - 4096
    assert written_bytes([files], files[0].size - 1) == sum(file.size for file in files)
    ends = sum(sound_end(file.path) for file in files[1:])
    assert written_bytes([files], files[0].size) == files[0].size + ends
