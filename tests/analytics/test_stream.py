"""`readStream` as Spark runs it: checkpoints, triggers, progress, and a pair of live brokers."""

import json
import re
import sys
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from journal_maker import JournalMaker, message_id

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

import brokers
from ports import free_port

from lockkeeper.client import connect

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECONDS_MAX = 60
RESOURCE = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: streamed}}
spec:
  listeners: [{{name: openwire, port: {port}}}]
  admin: {{port: 0}}
  journal: {{fileBytes: 64Ki, cleanupInterval: 1s, archive: {archive}}}
  locker: {{acquireInterval: 100ms, keepAlivePeriod: 100ms}}
"""
PLACE = ("file_id", "offset", "kind", "message_id")


class Sink:
    """A query that writes rows to Parquet, which takes each micro-batch once."""

    def __init__(self, spark, directory, folder, **options):
        self.spark = spark
        self.directory = directory
        self.folder = folder
        self.options = options

    def start(self, **trigger):
        reader = self.spark.readStream.format("lockkeeper").options(**self.options)
        frame = reader.load(str(self.directory)).select(*PLACE)
        writer = frame.writeStream.format("parquet").trigger(**trigger)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.start(str(self.folder / "rows"))

    def run(self):
        """Read what there is; return how many micro-batches had rows."""
        query = self.start(availableNow=True)
        query.awaitTermination(SECONDS_MAX)
        assert not query.isActive
        return [json.loads(each.json) for each in query.recentProgress if each.numInputRows]

    def rows(self):
        found = self.spark.read.parquet(str(self.folder / "rows")).collect()
        return sorted((tuple(row) for row in found), key=lambda row: row[:2])


@pytest.fixture
def maker(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    for number in range(4):
        maker.add(number, number).flush()
    return maker.roll().add(4, 4).flush()


def numbers(sink):
    return [int(row[3].rpartition(":")[2]) for row in sink.rows()]


def test_each_run_reads_what_came_since_the_last_in_steps_of_the_limit(spark, maker, tmp_path):
    sink = Sink(spark, maker.directory, tmp_path, maxBytesPerTrigger="1")
    steps = sink.run()
    assert len(steps) == 5 and numbers(sink) == [0, 1, 2, 3, 4]
    lags = [step["sources"][0]["latestOffset"] for step in steps]
    behind = [lag[str(maker.directory)]["bytesBehind"] for lag in lags]
    assert behind == sorted(behind, reverse=True) and behind[0] > 1000 and behind[-1] == 0
    assert sink.run() == []
    maker.add(5, 5).flush().roll().add(6, 6).flush()
    assert len(sink.run()) == 2
    assert numbers(sink) == [0, 1, 2, 3, 4, 5, 6]


def test_what_is_gone_ends_the_query_with_the_range_unless_told_otherwise(spark, maker, tmp_path):
    sink = Sink(spark, maker.directory, tmp_path, maxBytesPerTrigger="1", holdBytes="0")
    sink.run()
    maker.add(5, 5).flush().roll().add(6, 6).flush()
    end = (maker.directory / "db-2.log").stat().st_size
    (maker.directory / "db-2.log").unlink()
    query = sink.start(availableNow=True)
    with pytest.raises(Exception, match=r"db-2\.log from byte \d+ on was removed before it was"):
        query.awaitTermination(SECONDS_MAX)
    sink.options["failOnDataLoss"] = "false"
    sink.run()
    (lost,) = [row for row in sink.rows() if row[2] == "lost"]
    assert lost[0] == 2 and 0 < lost[1] < end
    assert sink.rows()[-1][3] == message_id(6)


class Load:
    """Messages sent and consumed through a pair, whoever is its master."""

    def __init__(self, port):
        self.url = f"failover:(tcp://127.0.0.1:{port})"
        self.sent = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=each) for each in (self._send, self._consume)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        with connect(self.url) as connection:
            producer = connection.session().producer("STREAMED")
            for number in count():
                if self.stopping.is_set():
                    return
                producer.send(f"{number} {'x' * 700}")
                self.sent.append(number)
                time.sleep(0.002)

    def _consume(self):
        with connect(self.url) as connection:
            consumer = connection.session().consumer("STREAMED", prefetch=10)
            while not self.stopping.is_set():
                consumer.receive(0.2)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(SECONDS_MAX)


@pytest.fixture
def start_broker(tmp_path):
    started = []

    def start(port, data, archive, waits=True):
        home = tmp_path / f"broker-{len(started)}"
        home.mkdir()
        resource = home / "broker.yaml"
        resource.write_text(RESOURCE.format(port=port, archive=str(archive).lower()))
        command = [*brokers.LOCKKEEPER, "broker", "-f", str(resource), "--data", str(data)]
        started.append(brokers.RunningBroker("lockkeeper", port, home, command, waits))
        return started[-1]

    yield start
    for broker in started:
        broker.kill()


@pytest.mark.parametrize("archive", [True, False])
def test_exactly_the_records_across_rotation_cleanup_a_crash_and_a_restart(
    spark, tmp_path, start_broker, archive
):
    port, data = free_port(), tmp_path / "data"
    master = start_broker(port, data, archive)
    standby = start_broker(port, data, archive, waits=False)
    load = Load(port)
    journal = _wait_for(lambda: next(data.rglob("db-1.log"), None)).parent
    # Without an archive a file may come and go unseen when the machine is slow.
    options = {"columns": ",".join(PLACE), "failOnDataLoss": str(archive).lower()}
    sink = Sink(spark, journal, tmp_path, maxBytesPerTrigger="200000", **options)
    query = sink.start(processingTime="100 milliseconds")
    time.sleep(5)
    master.kill()
    standby.wait()
    time.sleep(4)
    if archive:
        # Without an archive a stopped query would come back to files that are gone.
        query.stop()
        time.sleep(1)
        query = sink.start(processingTime="100 milliseconds")
    time.sleep(3)
    load.stop()
    standby.stop()
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    told = sink.rows()
    rows = [row for row in told if row[2] != "lost"]
    lost = [row[0] for row in told if row[2] == "lost"]
    files = {row[0] for row in rows}
    assert len(files) > 5 and not (journal / "db-1.log").exists()
    assert max(Counter(row[:2] for row in rows).values()) == 1
    if archive:
        assert not lost
        batch = spark.read.format("lockkeeper").load(str(journal)).select(*PLACE).collect()
        assert rows == sorted((tuple(row) for row in batch), key=lambda row: row[:2])
    else:
        assert files | {*lost} == set(range(min(files), max(files) + 1))
        assert len({*lost}) == len(lost) < len(files) / 2


def _wait_for(condition):
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_the_documented_stream_runs(spark, maker, tmp_path, monkeypatch):
    maker.line("event", 6, event="start", cause="why").flush()
    text = (Path(__file__).parents[2] / "docs" / "analytics.md").read_text("utf-8")
    section = text.partition("\n## As a stream\n")[2].partition("\n## ")[0]
    first, second = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    code = re.sub(r'"((north=)?)(data/kahadb|events/\w+)"', rf'"\1{tmp_path}/\3"', first)
    maker.directory.rename(tmp_path / "kahadb")
    (tmp_path / "data").mkdir()
    (tmp_path / "kahadb").rename(tmp_path / "data" / "kahadb")
    names = {"spark": spark, "json": json}
    exec(code, names)
    (row,) = spark.read.parquet(str(tmp_path / "events" / "rows")).collect()
    assert (row.event, row.cause) == ("start", "why")
    shown = eval(second.partition("\n")[0], names)
    documented = eval(second.partition("# ")[2])
    assert shown.keys() == documented.keys()
    assert shown["north"].keys() == documented["north"].keys()
