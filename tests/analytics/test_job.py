"""The job: a journal with known contents becomes a page and Parquet files that say so."""

import json
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lockkeeper.broker.policies.dead_letters import dead_letter
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode
from lockkeeper.message.reader import MessageReader
from lockkeeper.store.base import Reference
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper_analytics import job
from lockkeeper_analytics.spark import collected

if TYPE_CHECKING:
    from conftest import Command

pytestmark = [pytest.mark.spark, pytest.mark.slow]

START = 1_795_000_000_000
ORDERS, LETTERS = queue("ORDERS"), queue("ActiveMQ.DLQ")


def message(number: int, destination: Destination = ORDERS) -> Reference:
    """Return a message that arrived *number* seconds after the start."""
    producer = ProducerId("ID:test-1:1", 1, 1)
    body = encode(
        ActiveMQTextMessage(
            producer_id=producer,
            destination=destination,
            message_id=MessageId(producer, number),
            persistent=True,
            timestamp=START + 1000 * number,
            content=b"\x00\x00\x00\x02hi",
        )
    )
    arrived = (START + 1000 * number).to_bytes(8, "big")
    return Reference(MessageReader().receive(body, 0, len(body), number, arrived), len(body))


def analyze(directory: Path, out: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as a person would; other tests have it in this process."""
    command = [sys.executable, "-m", "lockkeeper_analytics", str(directory), "--out", str(out)]
    return subprocess.run(
        [*command, *more], capture_output=True, text=True, check=False, timeout=280
    )


def write(store: KahaDBStore) -> None:
    """Make everything durable."""
    store.flush()
    while store.waiting():
        select.select([store.fileno()], [], [], 5)
        store.completed()


def fill(directory: Path) -> None:
    """Send ten orders; seven are acknowledged, one dies, two wait."""
    directory.mkdir()
    store = KahaDBStore(directory)
    store.open()
    orders = [message(number) for number in range(10)]
    for number, order in enumerate(orders):
        store.trace(f'lk1 {{"t":"clock","at":{START + 1000 * number}}}')
        store.add(ORDERS, order, None)
        write(store)
    store.trace(f'lk1 {{"t":"clock","at":{START + 20_000}}}')
    for order in orders[:7]:
        store.remove(ORDERS, order)
    copy = MessageId(ProducerId("ID:broker-1:1", 1, 1), 1, 99, orders[7].loaded.identifier.decode())
    letter = dead_letter(orders[7].loaded, LETTERS, "out of stock", copy, 0)
    store.add(LETTERS, Reference(letter, len(letter.body)), None)
    store.remove(ORDERS, orders[7])
    write(store)
    store.close()


def earlier(directory: Path) -> dict[str, Any]:
    """Return the summary of a run that was made before the last two orders were acknowledged."""
    counts = {"sent": 10, "acknowledged": 5, "dead_lettered": 1, "in_doubt": 0, "takeovers": 0}
    waiting = {"waiting": 4, "waiting_dead_letters": 1, "oldest_waiting_at": None}
    return {
        "made_at": "2026-11-19T00:00:00Z",
        "directories": [str(directory)],
        "options": {"destination": ""},
        "counted_from": "2026-11-18T11:06:40Z",
        "last_at": "2026-11-18T11:07:00Z",
        "figures": {**counts, **waiting, "peak_per_second": 1.0},
    }


def test_a_report_says_what_happened(tmp_path: Path) -> None:
    fill(tmp_path / "journal")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.json").write_text(json.dumps(earlier(tmp_path / "journal")))
    done = analyze(tmp_path / "journal", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\nAcknowledged +5 +7 +2 more \(\+40.0 %\)", done.stderr)
    page = tmp_path / "report" / "index.html"
    assert done.stdout.strip() == str(page)
    text = page.read_text("utf-8")
    assert "out of stock" in text
    assert "https://" not in text and "http://" not in text.replace("http://www.w3.org", "")
    tables = {path.stem: pd.read_parquet(path) for path in page.parent.glob("*.parquet")}
    totals = tables["totals"].set_index("destination")
    assert totals.loc["ORDERS", "enqueued"] == 10
    assert totals.loc["ORDERS", "acknowledged"] == 7
    assert totals.loc["ORDERS", "dead_lettered"] == 1
    waiting = tables["backlog"].set_index("destination")["waiting"].to_dict()
    assert waiting == {"ORDERS": 2, "ActiveMQ.DLQ": 1}
    assert tables["dead_letters"]["cause"].tolist() == ["out of stock"]
    assert tables["rates"]["enqueued"].sum() >= 10
    summary = json.loads((page.parent / "report.json").read_text("utf-8"))
    assert summary["figures"]["acknowledged"] == 7
    assert summary["beside"]["figures"]["acknowledged"] == {
        "former": 5, "now": 7, "an_hour": None, "difference": 2, "share": 0.4,
        "direction": "more", "worse": None,
    }  # fmt: skip
    assert "Beside the former run" in text
    assert (summary["first_at"], summary["page"]) == ("2026-11-18T11:06:40.000Z", "index.html")
    assert {each["name"] for each in summary["reports"]} == tables.keys()
    for each in summary["reports"]:
        told = json.loads((page.parent / each["json"]).read_text("utf-8"))
        assert len(told["rows"]) == each["rows"] == len(tables[each["name"]])
    (letter,) = json.loads((page.parent / "dead_letters.json").read_text("utf-8"))["rows"]
    assert (letter["cause"], letter["messages"]) == ("out of stock", 1)


def test_a_report_alone_makes_a_page_of_it(tmp_path: Path, command: "Command") -> None:
    fill(tmp_path / "journal")
    out = tmp_path / "report"
    more = ("--report", "backlog", "--until", "1d")
    code, told, said = command(tmp_path / "journal", "--out", out, *more)
    assert (code, told) == (0, f"{out / 'index.html'}\n"), said
    names = {"index.html", "report.json", "backlog.parquet", "backlog.json"}
    assert {path.name for path in out.iterdir()} == names
    summary = json.loads((out / "report.json").read_text("utf-8"))
    assert summary["figures"] is None
    assert summary["options"]["until"].endswith("+00:00")


def test_of_a_long_report_memory_has_the_first_rows_and_parquet_all(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "journal")

    def run(name: str) -> tuple[pa.Table, dict[str, Any], dict[str, Any], str]:
        out = tmp_path / name
        job.analyze([str(tmp_path / "journal")], out, reports=["inventory", "rates"], session=spark)
        told = json.loads((out / "inventory.json").read_text("utf-8"))
        summary = json.loads((out / "report.json").read_text("utf-8"))
        page = (out / "index.html").read_text("utf-8")
        return pq.read_table(out / "inventory.parquet"), told, summary, page

    whole, told, summary, page = run("whole")
    monkeypatch.setattr(collected, "ROWS_MAX", 2)
    cut, cut_told, cut_summary, cut_page = run("cut")
    assert cut.equals(whole) and whole.num_rows > 2
    assert cut_told == {**told, "rows": told["rows"][:2]}
    assert told["rows_in_all"] == whole.num_rows == len(told["rows"])
    assert cut_summary["reports"] == summary["reports"]
    said = f"Of {whole.num_rows} rows only the first 2 are drawn and counted here"
    assert (said in cut_page, "only the first" in page) == (True, False)


def test_a_session_of_somebody_else_is_left_as_it_was(tmp_path: Path, spark: SparkSession) -> None:
    fill(tmp_path / "journal")
    setting = "spark.sql.shuffle.partitions"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "7")
    try:
        out = tmp_path / "report"
        outcome = job.analyze([str(tmp_path / "journal")], out, reports=["backlog"], session=spark)
        assert outcome.records and outcome.page.exists()
        assert spark.conf.get(setting) == "7"
        assert spark.range(3).count() == 3
    finally:
        spark.conf.set(setting, before)


def test_records_are_kept_in_the_place_of_earlier_ones(tmp_path: Path, spark: SparkSession) -> None:
    fill(tmp_path / "journal")
    records = tmp_path / "report" / "records.parquet"
    records.mkdir(parents=True)
    (records / "part-of-yesterday.parquet").write_bytes(b"PAR1")
    outcome = job.analyze(
        [str(tmp_path / "journal")],
        records.parent,
        reports=["backlog"],
        keep_records=True,
        session=spark,
    )
    assert len(pd.read_parquet(records)) == outcome.records > 0
    names = {"index.html", "report.json", "backlog.parquet", "backlog.json", records.name}
    assert {path.name for path in records.parent.iterdir()} == names


def test_records_kept_earlier_stay_where_spark_writes_elsewhere(
    tmp_path: Path, command: "Command"
) -> None:
    fill(tmp_path / "journal")
    records = tmp_path / "report" / "records.parquet"
    records.mkdir(parents=True)
    (records / "part-of-yesterday.parquet").write_bytes(b"PAR1")
    more = ("--keep-records", "--master", "k8s://https://127.0.0.1:1")
    code, _, said = command(tmp_path / "journal", "--out", records.parent, *more)
    assert code == 1
    assert said.startswith(f"lockkeeper: --keep-records: {records} is on this machine")
    assert len(said.splitlines()) == 1
    assert [path.name for path in records.iterdir()] == ["part-of-yesterday.parquet"]


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_no_journal_is_one_clear_line(tmp_path: Path, command: "Command", name: str) -> None:
    (tmp_path / "empty").mkdir()
    code, _, said = command(tmp_path / name, "--out", tmp_path / "report")
    assert code == 1
    assert name in said
    assert len(said.splitlines()) == 1
