"""Without the operator brokers go on, fail over too: routing never waits for it."""

import signal
import time

from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost, gap
from installation import Installation
from measures import record_gap
from signals import Signals

GAP_SECONDS_MAX = 5.0
AFTERWARDS_SECONDS = 5.0


def test_a_killed_master_has_a_successor_with_the_operator_down(
    installation: Installation, brokers: Brokers, clients: Clients, signals: Signals
) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    sender, receiver = clients.start("send", "ALONE"), clients.start("receive", "ALONE")
    installation.scale(0)
    try:
        master = brokers.master()
        killed = signals.send(master, signal.SIGKILL)
        brokers.wait_other_master(master["metadata"]["name"])
        time.sleep(AFTERWARDS_SECONDS)
        sender.end()
        confirmed = assert_nothing_lost(sender, receiver)
        record_gap(
            "SIGKILL with the operator down", gap(sender.notes(), killed), GAP_SECONDS_MAX,
            confirmed,
        )  # fmt: skip
    finally:
        installation.scale(2)
    brokers.wait_settled()
