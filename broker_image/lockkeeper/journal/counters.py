"""Counters of a destination: the meaning of each, and its name wherever it appears.

Statistics, the flight recorder, metrics, the command line and the analytics derive from this table.
"""

from typing import NamedTuple


class Counter(NamedTuple):
    """A count of messages since the broker became the master.

    `title` is for people, in a list; `meaning` completes the sentence "it counts …".
    """

    name: str
    title: str
    meaning: str

    @property
    def json_name(self) -> str:
        """The name in JSON: of the admin endpoint and of the flight recorder."""
        first, *others = self.name.split("_")
        return first + "".join(word.capitalize() for word in others)


COUNTERS = (
    Counter("enqueued", "enqueued", "messages that came"),
    Counter("dequeued", "dequeued", "messages that ended; on a topic, once for each subscription"),
    Counter("dispatched", "dispatched", "messages sent to consumers"),
    Counter("redelivered", "redelivered", "messages given back by consumers"),
    Counter("expired", "expired", "messages that ended at their expiry"),
    Counter(
        "discarded", "discarded", "messages discarded since consumers of a topic were too slow"
    ),
    Counter("dead_lettered", "dead-lettered", "messages moved to a dead letter queue"),
    Counter("never_written", "never written", "messages acknowledged before their write began"),
)
