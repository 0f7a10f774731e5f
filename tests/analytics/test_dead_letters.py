"""Dead letters that somebody moves, with their causes: they die no second time by that.

Where they come to is no dead letter queue.
"""

from collections import Counter

import pytest
from journal_maker import ORDERS, JournalMaker, message_id, rows_of
from journal_reports import asked, reports_of

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.records import UpdateMessage
from lockkeeper.message.destination import queue
from lockkeeper_analytics.page.labels import directory_labels
from lockkeeper_analytics.page.plots import extent_of, plot_data
from lockkeeper_analytics.page.story import NEEDED, dead_letter_queues, tell
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.trace.steps import trace

SHARED, DLQ = queue("ActiveMQ.DLQ"), queue("DLQ")
OTHER, PARKED = queue("OTHER"), queue("PARKED")


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def move(maker, number, at, source, target, cause="no stock", **fields):
    """Let a message die, or move a letter as ActiveMQ's console does: the records are alike."""
    properties = {"dlqDeliveryFailureCause": cause}
    maker.add(number, at, target, properties=properties, original_destination=source, **fields)
    return maker.remove(number, source).clock(at).flush()


def hold_anew(maker, number, at, source, target):
    """Let a broker hold a dead letter anew, as ActiveMQ does to mark it as redelivered."""
    properties = {"dlqDeliveryFailureCause": "no stock"}
    maker.add(number, at, target, properties=properties, original_destination=source)
    return maker.record(UpdateMessage(decode_record(maker.waiting.pop())))


def sent_back(maker, grave):
    """Of ten orders nine are taken; one dies, is sent back and taken. Twenty more wait."""
    for number in range(1, 11):
        maker.add(number, number)
    maker.clock(10).flush()
    for number in range(1, 10):
        maker.remove(number)
    maker.clock(20).flush()
    move(maker, 10, 30, ORDERS, grave)
    move(maker, 10, 40, grave, ORDERS).remove(10).clock(60).flush()
    for number in range(11, 31):
        maker.add(number, 100 + number)
    return maker.clock(200).flush()


def graves(directory):
    """Return the dead letter queues of a journal, but for the shared one, which it always has."""
    found = asked("FROM dead_letter_queues", directory)
    return {row["destination"] for row in found} - {SHARED.name}


def deaths(directory):
    """Return where messages died and where they went, in the order of their deaths."""
    found = asked("FROM deaths ORDER BY position", directory)
    return [(row["origin"], row["destination"]) for row in found]


@pytest.mark.parametrize("grave", [SHARED, DLQ])
def test_a_letter_that_came_back_is_acknowledged_as_any_message(report, maker, grave):
    sent_back(maker, grave)
    tables = {name: report(name, maker.directory) for name in ("brokers", *NEEDED)}
    totals = {row["destination"]: row for row in tables["totals"]}
    assert {name: row["acknowledged"] for name, row in totals.items()} == {
        "ORDERS": 10,
        grave.name: 0,
    }
    assert {name: row["dead_lettered"] for name, row in totals.items()} == {
        "ORDERS": 1,
        grave.name: 0,
    }
    assert {name: row["is_dead_letter_queue"] for name, row in totals.items()} == {
        "ORDERS": False,
        grave.name: True,
    }
    (broker,) = tables["brokers"]
    story = tell(tables)
    assert (broker["acknowledged"], story.acknowledged) == (10, 10)
    assert (broker["dead_lettered"], story.dead_lettered) == (1, 1)
    # It is one more message that was sent, as one that comes back under a new id.
    assert story.balance == (("acknowledged", 10), ("dead letters", 1), ("waiting", 20))
    assert story.sent == sum(number for _, number in story.balance)


@pytest.mark.parametrize("grave", [SHARED, DLQ])
def test_nobody_is_told_to_send_it_back_from_where_it_belongs(report, maker, grave):
    sent_back(maker, grave)
    letters = report("dead_letters", maker.directory)
    assert [(row["origin"], row["dead_letter_queue"], row["messages"]) for row in letters] == [
        ("ORDERS", grave.name, 1)
    ]
    poison = report("poison", maker.directory)
    assert [(row["origin"], row["dead_letter_queue"], row["retried"]) for row in poison] == [
        ("ORDERS", grave.name, 1)
    ]


def test_while_it_waits_it_is_no_dead_letter(report, maker):
    maker.add(1, 0).add(2, 1).clock(1).flush()
    for number in (1, 2):
        move(maker, number, 10 + number, ORDERS, DLQ, redelivery_counter=6)
    move(maker, 1, 20, DLQ, ORDERS, redelivery_counter=1)
    backlog = {row["destination"]: row for row in report("backlog", maker.directory)}
    told = {name: (row["waiting"], row["dead_letters"]) for name, row in backlog.items()}
    assert told == {"ORDERS": (1, 0), "DLQ": (1, 1)}
    (marked,) = report("redeliveries", maker.directory)
    assert (marked["destination"], marked["marked"], marked["highest"]) == ("ORDERS", 3, 6)


@pytest.mark.parametrize("grave", [SHARED, DLQ])
def test_a_letter_that_is_held_anew_stays_one_without_the_record_of_its_death(report, maker, grave):
    move(maker.add(1, 0), 1, 10, ORDERS, grave)
    hold_anew(maker.roll(), 1, 10, ORDERS, grave)
    maker.add(2, 20).clock(20).flush()

    def waiting():
        found = report("backlog", maker.directory)
        return {row["destination"]: (row["waiting"], row["dead_letters"]) for row in found}

    assert waiting() == {grave.name: (1, 1), "ORDERS": (1, 0)}
    assert deaths(maker.directory) == [("ORDERS", grave.name)]
    (maker.directory / "db-1.log").unlink()
    assert waiting() == {grave.name: (1, 1), "ORDERS": (1, 0)}
    assert deaths(maker.directory) == []
    assert graves(maker.directory) == {grave.name} - {SHARED.name}


@pytest.mark.parametrize("grave", [SHARED, DLQ])
def test_one_that_was_sent_back_and_is_held_anew_is_none(report, maker, grave):
    maker.add(1, 0).add(2, 1).clock(1).flush()
    for number in (1, 2):
        move(maker, number, 10, ORDERS, grave)
    move(maker, 1, 30, grave, ORDERS)
    hold_anew(maker.roll(), 1, 30, grave, ORDERS).clock(40).flush()
    backlog = report("backlog", maker.directory)
    told = {row["destination"]: (row["waiting"], row["dead_letters"]) for row in backlog}
    assert told == {"ORDERS": (1, 0), grave.name: (1, 1)}
    assert graves(maker.directory) == {grave.name} - {SHARED.name}


def test_dead_letters_are_counted_in_time_where_messages_died(report, maker):
    sent_back(maker, DLQ)
    rates = report("rates", maker.directory)
    assert {row["destination"]: row["dead_lettered"] for row in rates} == {"ORDERS": 1, "DLQ": 0}


@pytest.mark.parametrize("grave", [SHARED, DLQ])
def test_a_letter_whose_death_is_in_no_file_any_more_did_not_die_where_it_came_to(maker, grave):
    maker.add(1, 0).add(2, 1).clock(1).flush()
    move(maker, 1, 10, ORDERS, grave)
    maker.roll().add(3, 15).clock(15).flush()
    move(maker, 2, 20, ORDERS, grave)
    move(maker, 1, 30, grave, ORDERS)
    assert deaths(maker.directory) == [("ORDERS", grave.name)] * 2
    (maker.directory / "db-1.log").unlink()
    assert deaths(maker.directory) == [("ORDERS", grave.name)]
    assert graves(maker.directory) == {grave.name} - {SHARED.name}


@pytest.mark.parametrize("grave", [SHARED, DLQ])
def test_tables_let_a_letter_die_once(maker, grave):
    maker.add(1, 0).add(2, 1).clock(1).flush()
    move(maker, 1, 10, ORDERS, grave)
    move(maker, 2, 20, ORDERS, grave)
    move(maker, 1, 60_000, grave, ORDERS).remove(1).clock(60_010).flush()

    def told(table, *names):
        return [tuple(row[name] for name in names) for row in rows_of(maker.directory, table=table)]

    died, there = ("ORDERS", "dead_lettered", str(grave)), (grave.name, "pending", None)
    ends = [("ORDERS", "acknowledged", None), (grave.name, "acknowledged", None)]
    found = told("messages", "destination", "outcome", "dead_letter_destination")
    assert sorted(found, key=str) == sorted([died, died, there, *ends], key=str)
    assert sorted(told("acks", "destination", "outcome")) == sorted(
        each[:2] for each in (died, died, *ends)
    )
    assert dict(told("destinations", "destination", "dead_lettered")) == {
        "ORDERS": 2,
        grave.name: 0,
    }
    steps = trace(message_id(1), [str(maker.directory)])
    assert [
        (row["destination"], row["target"]) for row in steps if row["step"] == "dead_lettered"
    ] == [("ORDERS", str(grave))]


@pytest.mark.parametrize("grave", ["ActiveMQ.DLQ.Queue.ORDERS", "DLQ.ORDERS", "ORDERS.DLQ"])
def test_those_that_were_sent_back_from_a_queue_of_their_own_make_it_none(report, maker, grave):
    for number in (1, 2, 3):
        maker.add(number, number)
    maker.clock(3).flush()
    for number in (1, 2, 3):
        move(maker, number, 10 * number, ORDERS, queue(grave))
    maker.roll()
    for number in (1, 2, 3):
        move(maker, number, 60_000 + number, queue(grave), ORDERS)
    maker.add(4, 60_010).clock(60_010).flush()
    assert (graves(maker.directory), len(deaths(maker.directory))) == ({grave}, 3)
    (maker.directory / "db-1.log").unlink()
    assert (graves(maker.directory), deaths(maker.directory)) == (set(), [])
    (orders,) = report("backlog", maker.directory)
    assert (orders["destination"], orders["waiting"], orders["dead_letters"]) == ("ORDERS", 4, 0)


@pytest.mark.parametrize("origin", ["SHOP.FAILED", "FAILED.SHOP"])
def test_letters_may_die_into_a_queue_whose_name_is_in_that_of_their_origin(report, maker, origin):
    source, grave = queue(origin), queue("FAILED")
    for number in range(1, 6):
        maker.add(number, number, source)
    maker.clock(5).flush().roll()
    for number in range(6, 9):
        maker.add(number, number, source)
    for number in range(1, 5):
        move(maker, number, 10 + number, source, grave)
    # Those that are sent back die no second time, however many there are.
    for round_ in (20, 30, 40):
        for number in range(1, 5):
            move(maker, number, round_, grave, source)
            move(maker, number, round_ + 5, source, grave)
    assert deaths(maker.directory) == [(origin, "FAILED")] * 16
    assert graves(maker.directory) == {"FAILED"}
    (letters,) = report("dead_letters", maker.directory)
    assert (letters["origin"], letters["messages"]) == (origin, 16)
    totals = {row["destination"]: row["dead_lettered"] for row in report("totals", maker.directory)}
    assert totals == {origin: 16, "FAILED": 0}
    outcomes = Counter(row["outcome"] for row in rows_of(maker.directory, table="acks"))
    assert outcomes == {"dead_lettered": 16, "acknowledged": 12}


@pytest.mark.parametrize("origin", ["SHOP.FAILED", "FAILED.SHOP"])
def test_so_they_do_where_other_messages_tell_that_their_origin_is_no_dead_letter_queue(
    maker, origin
):
    source, grave = queue(origin), queue("FAILED")
    for number in range(1, 6):
        maker.add(number, number, source)
    maker.clock(5).flush().roll().add(6, 6, source)
    for number in range(1, 6):
        move(maker, number, 10 + number, source, grave)
    (maker.directory / "db-1.log").unlink()
    assert deaths(maker.directory) == [(origin, "FAILED")] * 5
    assert graves(maker.directory) == {"FAILED"}


def test_nor_do_they_at_the_broker_that_they_are_forwarded_to(maker):
    properties = {"dlqDeliveryFailureCause": "no stock"}
    for number in (1, 2, 3):
        grave = queue("ActiveMQ.DLQ.Queue.ORDERS")
        maker.add(number, number, properties=properties, original_destination=grave)
    maker.clock(3).flush()
    assert (graves(maker.directory), deaths(maker.directory)) == (set(), [])


def test_of_the_shared_queue_nobody_need_know_who_died_into_it(maker):
    move(maker.add(2, 1), 1, 10, SHARED, ORDERS)
    assert (deaths(maker.directory), graves(maker.directory)) == ([], set())


def test_who_dies_again_of_the_same_cause_dies_again(maker):
    maker.add(1, 0).clock(0).flush()
    for round_ in range(3):
        move(maker, 1, 10 + 20 * round_, ORDERS, DLQ)
        move(maker, 1, 20 + 20 * round_, DLQ, ORDERS)
    assert deaths(maker.directory) == [("ORDERS", "DLQ")] * 3
    assert graves(maker.directory) == {"DLQ"}


def test_who_moves_letters_to_one_side_and_back_lets_none_die(maker):
    maker.add(1, 0).clock(0).flush()
    move(maker, 1, 10, ORDERS, DLQ)
    move(maker, 1, 20, DLQ, PARKED)
    move(maker, 1, 30, PARKED, ORDERS)
    assert deaths(maker.directory) == [("ORDERS", "DLQ")]
    assert graves(maker.directory) == {"DLQ"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("DLQ", "DLQ.DLQ"),
        ("DLQ.ORDERS", "DLQ"),
        ("ORDERS.DLQ", "DLQ"),
        ("ActiveMQ.DLQ.Queue.ORDERS", "ActiveMQ.DLQ"),
    ],
)
def test_a_letter_that_dies_in_its_dead_letter_queue_lies_in_the_next_one(
    report, maker, first, second
):
    for number in (1, 2, 3):
        maker.add(number, 0)
    maker.clock(0).flush()
    for number in (1, 2, 3):
        move(maker, number, 10 + number, ORDERS, queue(first))
    for number in (1, 2, 3):
        move(maker, number, 20 + number, queue(first), queue(second), "nobody repairs it")
    told = [("ORDERS", first)] * 3 + [(first, second)] * 3
    assert sorted(deaths(maker.directory)) == sorted(told)
    # The shared one is one anyway.
    assert graves(maker.directory) == {first, second} - {"ActiveMQ.DLQ"}
    (row,) = report("backlog", maker.directory)
    assert (row["destination"], row["waiting"], row["dead_letters"]) == (second, 3, 3)


def test_a_queue_that_others_send_to_may_have_letters_as_well(report, maker):
    for number in range(1, 5):
        maker.add(number, number, OTHER)
    move(maker.add(5, 5), 5, 10, ORDERS, OTHER)
    assert (deaths(maker.directory), graves(maker.directory)) == ([("ORDERS", "OTHER")], set())
    (letter,) = report("dead_letters", maker.directory)
    assert (letter["dead_letter_queue"], letter["example"]) == ("OTHER", message_id(5))


def test_each_directory_has_its_own_dead_letter_queues(maker, tmp_path):
    move(maker.add(1, 0), 1, 10, ORDERS, DLQ)
    second = JournalMaker(tmp_path / "second").add(1, 0, DLQ).flush()
    found = asked(
        "FROM dead_letter_queues WHERE destination = 'DLQ'", maker.directory, second.directory
    )
    assert [(row["directory"], row["destination_kind"]) for row in found] == [
        (str(maker.directory), "queue")
    ]


@pytest.mark.parametrize("names", [["rates"], ["rates", "dead_letters"], ["rates", "totals"]])
def test_the_flow_of_all_destinations_has_no_letter_twice_whatever_is_told_beside_it(maker, names):
    for number in range(5):
        maker.add(number, number)
    maker.clock(10).flush()
    for number in range(5):
        move(maker, number, 20 + number, ORDERS, DLQ)
    tables = reports_of(maker.directory, names=names)
    rows, labels = tables["rates"], directory_labels(tables)
    (plot,) = REPORTS["rates"].plots
    drawn = plot_data(plot, rows, labels, dead_letter_queues(tables), extent_of(rows))
    came = {each["label"]: each["values"][0] for each in drawn["series"]}
    assert came == {plot.all_of: [5], "ORDERS": [5], "DLQ": [5]}
