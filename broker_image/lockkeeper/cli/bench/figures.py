"""Figures of a bench: what workers count, and what all of them together come to."""

from dataclasses import dataclass, field

from lockkeeper.cli.bench.histogram import Histogram


@dataclass
class Figures:
    """Counts of one stretch of time; the broker has confirmed all, unless told otherwise.

    `send_times` are waits for an answer, to a send or a commit; `delivery_times` begin when a
    message was to be sent. Times are in nanoseconds since the epoch.
    """

    sent: int = 0
    received: int = 0
    redelivered: int = 0
    """Those of the received that may have come before."""
    left_behind: int = 0
    """Messages of earlier runs, which are not counted as received."""
    rolled_back: int = 0
    """Messages of transactions that have not happened, because a connection broke."""
    in_doubt: int = 0
    """Messages of transactions of which nobody knows whether they have happened."""
    send_times: Histogram = field(default_factory=Histogram)
    delivery_times: Histogram = field(default_factory=Histogram)
    last_sent: int = 0
    last_received: int = 0

    def merge(self, other: "Figures") -> None:
        """Add what *other* counts."""
        self.sent += other.sent
        self.received += other.received
        self.redelivered += other.redelivered
        self.left_behind += other.left_behind
        self.rolled_back += other.rolled_back
        self.in_doubt += other.in_doubt
        self.send_times.merge(other.send_times)
        self.delivery_times.merge(other.delivery_times)
        self.last_sent = max(self.last_sent, other.last_sent)
        self.last_received = max(self.last_received, other.last_received)
