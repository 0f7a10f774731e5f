"""The whole in a minute: apply, Ready, send, kill the master, receive everything."""

import signal

from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost
from kube import wait_until
from signals import Signals


def test_a_pair_loses_nothing_when_its_master_is_killed(
    brokers: Brokers, clients: Clients, signals: Signals
) -> None:
    brokers.namespace.apply(broker(brokers.name))
    print(f"Ready after {brokers.wait_ready():.1f} s")
    # Ready is said by the master alone; without a standby its own pod would go on.
    brokers.wait_settled()
    sender = clients.start("send", "SMOKE")
    master = brokers.master()
    signals.send(master, signal.SIGKILL)
    brokers.wait_other_master(master["metadata"]["name"])
    before = len(sender.notes())
    wait_until("it goes on", lambda: len(sender.notes()) > before + 100)
    sender.end()
    receiver = clients.start("receive", "SMOKE")
    assert assert_nothing_lost(sender, receiver) > 100
