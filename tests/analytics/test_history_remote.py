"""A history in an object store, of journals there: each record once, whoever writes meanwhile."""

import duckdb
import pytest
from deltalake import DeltaTable
from journal_maker import JournalMaker, rows_of
from journal_reports import asked
from object_store import bucket, serving, upload

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.history import deltas, keeping
from lockkeeper_analytics.history.deltas import DeltaPlace
from lockkeeper_analytics.history.formats import Format
from lockkeeper_analytics.tables.options import parse_options

pytestmark = pytest.mark.slow

DAY = 86_400_000
COLUMNS = keeping.TABLE.arrow(keeping.COLUMNS)


@pytest.fixture(scope="module")
def store():
    with serving() as address:
        yield address


@pytest.fixture
def settings(store, monkeypatch):
    """Return the settings of URLs of the bucket `archive`."""
    return bucket(store, "archive", monkeypatch)


@pytest.fixture
def maker(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0).clock(0).flush().add(2, DAY).clock(DAY).flush()
    return maker.roll().remove(1).flush().add(3, 2 * DAY).clock(2 * DAY).flush()


def places(rows):
    return [(row["file_id"], row["offset"]) for row in rows]


def options_of(directory):
    return parse_options({"path": str(directory), "columns": ",".join(keeping.COLUMNS)})


def test_a_journal_in_a_bucket_is_kept_in_a_bucket(maker, settings):
    journal, history = (f"s3://archive/first/{name}?{settings}" for name in ("kahadb", "history"))
    place = f"s3://archive/first/history/broker=north?{settings}"
    columns = "broker,kind,message_id,file_id,offset,written_after"
    for records, waiting in ((7, 2), (1, 3)):
        upload(maker.directory, "archive/first/kahadb", settings)
        kept = keeping.keep(options_of(f"north={journal}"), history, Format.DELTA)
        assert kept == (records, 0)
        expected = rows_of(f"north={maker.directory}", columns=columns)
        assert rows_of(place, columns=columns) == expected
        (row,) = asked("SELECT count(*) AS waiting FROM messages WHERE outcome = 'pending'", place)
        assert row["waiting"] == waiting
        maker.add(4, 2 * DAY).flush()
    table = DeltaTable("s3://archive/first/history", storage_options=as_users_do(settings))
    records = table.to_pyarrow_dataset()
    assert duckdb.sql("SELECT broker, count(*) FROM records GROUP BY ALL").fetchall() == [
        ("north", len(records.to_table()))
    ]


def as_users_do(settings: str) -> dict[str, str]:
    address = settings.partition("endpoint_override=")[2].partition("&")[0]
    return {
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }


def test_of_two_runs_at_once_one_is_refused(maker, settings):
    history, name = f"s3://archive/second?{settings}", str(maker.directory)
    first, second = (DeltaPlace(history, "journal", COLUMNS) for _ in range(2))
    assert keeping._Appending(name, first, options_of(name)).run().records == 7
    with pytest.raises(AnalyticsError, match=r"broker=journal\?.*: another run writes to it"):
        keeping._Appending(name, second, options_of(name)).run()
    place = f"s3://archive/second/broker=journal?{settings}"
    assert places(rows_of(place)) == places(rows_of(name))


@pytest.mark.parametrize("effect", ["write_rows", "write_file", "remove_file"])
def test_a_run_that_is_killed_anywhere_is_repeated(maker, settings, monkeypatch, effect):
    monkeypatch.setattr(keeping, "STEP_BYTES", 1)
    history, name = f"s3://archive/{effect}?{settings}", str(maker.directory)
    with monkeypatch.context() as patch:
        left = [2]

        def ending(*given):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            return work(*given)

        work = getattr(deltas, effect)
        patch.setattr(deltas, effect, ending)
        with pytest.raises(KeyboardInterrupt):
            keeping.keep(options_of(name), history)
    kept = keeping.keep(options_of(name), history)
    assert 0 < kept.records < 7
    assert places(rows_of(f"s3://archive/{effect}/broker=journal?{settings}")) == places(
        rows_of(name)
    )
