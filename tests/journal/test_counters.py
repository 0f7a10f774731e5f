"""Every counter has a place in the statistics, and is told wherever counters are told."""

import inspect

from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.journal.counters import COUNTERS


def test_the_statistics_have_every_counter_and_no_other() -> None:
    counted = {name for name, value in inspect.getmembers(Statistics()) if type(value) is int}
    assert counted == {counter.name for counter in COUNTERS}


def test_names_in_json_are_those_of_activemq_and_the_recorder() -> None:
    assert [counter.json_name for counter in COUNTERS] == [
        "enqueued",
        "dequeued",
        "dispatched",
        "redelivered",
        "expired",
        "discarded",
        "deadLettered",
        "neverWritten",
    ]
