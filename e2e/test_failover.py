"""The master's process is killed: clients go on with the standby."""

import signal
import time
from dataclasses import replace

import pytest
from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost, gap
from measures import record_gap
from signals import Signals

GAP_SECONDS_MAX = 5.0
AFTERWARDS_SECONDS = 6.0


@pytest.mark.parametrize("through", ["service", "uri"])
def test_the_standby_takes_over_from_a_killed_master(
    brokers: Brokers, clients: Clients, signals: Signals, through: str
) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    users = replace(clients, through=through)
    sender, receiver = users.start("send", "KILLED"), users.start("receive", "KILLED")
    master = brokers.master()
    killed = signals.send(master, signal.SIGKILL)
    brokers.wait_other_master(master["metadata"]["name"])
    time.sleep(AFTERWARDS_SECONDS)
    sender.end()
    confirmed = assert_nothing_lost(sender, receiver)
    what = f"SIGKILL of the master, client through the {through}"
    record_gap(what, gap(sender.notes(), killed), GAP_SECONDS_MAX, confirmed)
    brokers.wait_settled()
    resource = brokers.resource()
    assert resource is not None
    assert resource["status"]["lastFailover"]["cause"]
    reasons = {event["reason"] for event in brokers.namespace.items("events")}
    assert "FailedOver" in reasons
