"""The life of a message in a network: from broker to broker, by which bridges."""

import pytest
from journal_maker import message_id
from network_journals import dead_letter, grown

from lockkeeper_analytics.trace.command import told
from lockkeeper_analytics.trace.steps import trace


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return grown(tmp_path_factory.mktemp("network"))


def steps(identifier, *directories):
    return [
        (row["broker"], row["step"], row["from_broker"], row["to_broker"], row["bridge"])
        for row in trace(identifier, [str(each) for each in directories])
    ]


def test_a_message_is_followed_from_broker_to_broker(network):
    assert steps("north-client-1:1:1:1", *network) == [
        ("north", "arrived", None, None, None),
        ("south", "arrived", "north", None, "to-south"),
        ("west", "arrived", "south", None, "to-west"),
        ("north", "forwarded", None, "south", "to-south"),
        ("south", "forwarded", None, "west", "to-west"),
        ("west", "acknowledged", None, None, None),
    ]
    assert steps("north-client-1:1:1:5", *network)[-1][:2] == ("west", "stranded")
    assert steps("north-client-1:1:1:6", *network)[-1][:2] == ("east", "pending")


def test_brokers_on_the_way_that_have_no_record_are_told_of(network):
    north, _, west, _ = network
    assert steps("north-client-1:1:1:1", west) == [
        ("ID:north", "passed", None, "south", None),
        ("south", "passed", None, "west", "to-west"),
        ("west", "arrived", "south", None, "to-west"),
        ("west", "acknowledged", None, None, None),
    ]
    absent = trace("north-client-1:1:1:1", [str(north), str(west)])
    assert [(row["broker"], row["directory"]) for row in absent if row["step"] == "passed"] == [
        ("south", None)
    ]


def test_a_dead_letter_has_come_over_no_bridge_by_itself(tmp_path):
    found = steps(message_id(1), dead_letter(tmp_path / "b"))
    assert [(each[1], each[2]) for each in found] == [
        ("passed", None),
        ("arrived", "ID:a"),
        ("arrived", None),
        ("dead_lettered", None),
        ("pending", None),
    ]


def test_people_are_told_of_bridges_and_of_brokers_without_a_journal(network):
    *_, west, _ = network
    shown = [told(step) for step in trace("north-client-1:1:1:1", [str(west)])]
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
