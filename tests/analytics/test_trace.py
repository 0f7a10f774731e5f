"""The life of a message: by its id or correlation id, over several journals, by the command."""

import csv
import io
import json
import subprocess
import sys

import pytest
from journal_lived import LETTERS, MAILS, ORDERS, lived
from journal_maker import JournalMaker, message_id, transaction

from lockkeeper.message.destination import queue, topic
from lockkeeper_analytics.errors import AnalyticsError, NoJournalError
from lockkeeper_analytics.trace.steps import trace


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("lived") / "journal")


def told(identifier, *directories):
    """Return the steps, each as where, what, and how many ms after the first."""
    found = trace(identifier, [str(each) for each in directories])
    first = found[0]["earliest"]
    return [
        (
            row["destination"],
            row["step"],
            None if row["earliest"] is None else (row["earliest"] - first).total_seconds(),
        )
        for row in found
    ]


def test_a_message_goes_through_its_queue_its_death_and_back(journal):
    orders, letters = str(ORDERS.name), str(LETTERS.name)
    assert told(message_id(10), journal) == [
        (orders, "arrived", 0.0),
        (letters, "arrived", 0.04),
        (orders, "dead_lettered", 0.04),
        (orders, "arrived", 117.0),
        (letters, "acknowledged", 117.0),
        (orders, "pending", None),
    ]
    dead, letter = trace(message_id(10), [str(journal)])[2:0:-1]
    assert dead["target"] == f"queue://{letters}"
    assert dead["cause"] == letter["cause"] == "no such customer: ID:shop-1-77:4 <b>'%"
    assert (letter["destination_before"], letter["redeliveries"]) == (f"queue://{orders}", 6)


def test_a_correlation_id_leads_to_all_that_carry_it(journal):
    found = trace("order-9", [str(journal)])
    assert {(row["destination"], row["message_id"]) for row in found} == {
        (str(ORDERS.name), message_id(9)),
        (str(MAILS.name), message_id(100_002)),
    }


def test_an_answer_is_found_by_the_id_of_what_it_answers(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    maker.clock(0).add(1, 0).add(2, 5, queue("ANSWERS"), correlation_id=message_id(1)).flush()
    assert told(message_id(1), tmp_path / "journal") == [
        ("ORDERS", "arrived", 0.0),
        ("ANSWERS", "arrived", 0.005),
        ("ANSWERS", "pending", None),
        ("ORDERS", "pending", None),
    ]


def test_a_retry_under_a_new_id_is_followed_by_any_of_its_ids(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    retried = {"lockkeeper_retry_of": message_id(1)}
    dead = {"dlqDeliveryFailureCause": "no stock"}
    maker.clock(0).add(1, 0).flush().clock(10)
    maker.add(1, 10, LETTERS, properties=dead, original_destination=ORDERS).remove(1).flush().clock(
        20
    )
    maker.add(2, 20, properties=retried).remove(1, LETTERS).flush().clock(30)
    died_again = {**dead, **retried}
    maker.add(2, 30, LETTERS, properties=died_again, original_destination=ORDERS).remove(2)
    maker.flush().clock(40).add(3, 40, properties=retried).remove(2, LETTERS).add(4, 40).flush()
    lives = [told(message_id(number), maker.directory) for number in (1, 2, 3)]
    orders, letters = str(ORDERS.name), str(LETTERS.name)
    assert lives[0] == lives[1] == lives[2] == [
        (orders, "arrived", 0.0),
        (letters, "arrived", 0.01),
        (orders, "dead_lettered", 0.01),
        (orders, "arrived", 0.02),
        (letters, "acknowledged", 0.02),
        (letters, "arrived", 0.03),
        (orders, "dead_lettered", 0.03),
        (orders, "arrived", 0.04),
        (letters, "acknowledged", 0.04),
        (orders, "pending", None),
    ]  # fmt: skip
    assert {row["retry_of"] for row in trace(message_id(3), [str(maker.directory)])} == {
        None,
        message_id(1),
    }


def test_several_journals_are_one_life(tmp_path):
    north, south = JournalMaker(tmp_path / "north"), JournalMaker(tmp_path / "south")
    north.clock(0).add(1, 0).flush().clock(100).remove(1).flush()
    south.clock(0).add(2, 80).add(1, 90, queue("BRIDGED")).flush()
    found = trace(message_id(1), [f"n={north.directory}", str(south.directory)])
    assert [(row["broker"], row["destination"], row["step"]) for row in found] == [
        ("n", "ORDERS", "arrived"),
        ("south", "BRIDGED", "arrived"),
        ("n", "ORDERS", "acknowledged"),
        ("south", "BRIDGED", "pending"),
    ]


def test_what_is_left_of_a_message_whose_file_is_gone_is_its_end(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    maker.clock(0).add(2, 0).remove(1).flush()
    assert told(message_id(1), maker.directory) == [("ORDERS", "acknowledged", 0.0)]


def test_a_transaction_that_did_not_end_is_told(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    maker.clock(0).add(1, 0, tx=transaction(7)).flush()
    found = trace(message_id(1), [str(maker.directory)])
    assert found[0]["step"] == "arrived"
    assert found[0]["transaction"].startswith("TX:")
    assert found[-1]["step"] == "open"


HARD = ["it's", "a\\'b", "{id}", "{messages}", "'; DROP TABLE x; --", "Ü😀", "x" * 10_000]


@pytest.mark.parametrize("identifier", HARD, ids=range(len(HARD)))
def test_an_id_is_a_text_whatever_is_in_it(identifier, tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0, correlation_id=identifier).add(2, 0, topic("T"), correlation_id="other").flush()
    found = trace(identifier, [str(maker.directory)])
    assert [row["step"] for row in found] == ["arrived", "pending"]
    assert {row["correlation_id"] for row in found} == {identifier}


def test_nothing_is_asked_for_by_nothing(tmp_path):
    with pytest.raises(AnalyticsError, match="an empty id names no message"):
        trace(" ", [str(tmp_path)])
    with pytest.raises(NoJournalError):
        trace("ID:1", [str(tmp_path / "absent")])


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lockkeeper.cli.main", "trace", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.mark.slow
@pytest.mark.patient
def test_the_command_tells_people_and_programs(journal):
    shown = command(message_id(10), journal)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["time", "broker", "destination", "step", "message", "detail"]
    assert "went to queue://ActiveMQ.DLQ, cause: no such customer" in shown.stdout
    assert shown.stderr == "lockkeeper: what belongs to it: lockkeeper trace order-10 …\n"
    rows = [
        json.loads(each)
        for each in command(message_id(10), journal, "-f", "json").stdout.splitlines()
    ]
    assert [row["step"] for row in rows][2:4] == ["dead_lettered", "arrived"]
    table = command(message_id(10), journal, "-f", "csv").stdout
    assert [row["step"] for row in csv.DictReader(io.StringIO(table))] == [
        row["step"] for row in rows
    ]
    absent = command("ID:nobody", journal)
    assert absent.returncode == 1
    assert "no message 'ID:nobody'" in absent.stderr and absent.stdout == ""
