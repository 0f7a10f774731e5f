"""The life of a message in a network: from broker to broker, by which bridges."""

import pytest
from journal_maker import message_id
from network_journals import dead_letter, grown

from lockkeeper_analytics.trace.command import told
from lockkeeper_analytics.trace.steps import trace


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return grown(tmp_path_factory.mktemp("network"))


def steps(rows):
    return [
        (row["broker"], row["step"], row["from_broker"], row["to_broker"], row["bridge"])
        for row in rows
    ]


def test_messages_are_followed_from_broker_to_broker(network):
    rows = trace("followed", [str(each) for each in network])
    several = [
        steps(row for row in rows if row["message_id"] == f"north-client-1:1:1:{number}")
        for number in (1, 4, 6)
    ]
    ways = [
        [
            ("north", "arrived", None, None, None),
            ("south", "arrived", "north", None, "to-south"),
            (last, "arrived", "south", None, f"to-{last}"),
            ("north", "forwarded", None, "south", "to-south"),
            ("south", "forwarded", None, last, f"to-{last}"),
            (last, end, None, None, None),
        ]
        for last, end in (("west", "acknowledged"), ("west", "stranded"), ("east", "pending"))
    ]
    assert several == ways
    assert {row["client"] for row in rows if row["step"] == "arrived"} == {"north-client-1:1:1"}


def test_brokers_on_the_way_that_have_no_record_are_told_of(network):
    *_, west, _ = network
    rows = [row for row in trace("followed", [str(west)]) if row["message_id"].endswith(":1:1:1")]
    assert [(row["directory"], *each) for row, each in zip(rows, steps(rows), strict=True)] == [
        (None, "ID:north", "passed", None, "south", None),
        (None, "south", "passed", None, "west", "to-west"),
        (str(west), "west", "arrived", "south", None, "to-west"),
        (str(west), "west", "acknowledged", None, None, None),
    ]
    shown = [told(step) for step in rows]
    assert [(each["broker"], each["step"], each["detail"]) for each in shown] == [
        ("ID:north (not given)", "passed", "to broker south"),
        ("south (not given)", "passed", "to broker west, over bridge to-west"),
        (
            "west",
            "arrived",
            "from broker south, over bridge to-west, from north-client-1:1:1",
        ),
        ("west", "acknowledged", ""),
    ]


def test_a_dead_letter_has_come_over_no_bridge_by_itself(tmp_path):
    found = steps(trace(message_id(1), [str(dead_letter(tmp_path / "b"))]))
    assert [(each[1], each[2]) for each in found] == [
        ("passed", None),
        ("arrived", "ID:a"),
        ("arrived", None),
        ("dead_lettered", None),
        ("pending", None),
    ]
