"""The master's node loses its power: no goodbye, nothing answers any more."""

import time
from dataclasses import replace

import pytest
from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost, gap
from measures import record_gap
from nodes import Nodes

GAP_SECONDS_MAX = 20.0
AFTERWARDS_SECONDS = 5.0


@pytest.mark.parametrize("through", ["service", "uri"])
def test_the_standby_takes_over_from_a_node_without_power(
    brokers: Brokers, clients: Clients, nodes: Nodes, through: str
) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    master = brokers.master()
    (standby,) = brokers.with_role("standby")
    node, other = master["spec"]["nodeName"], standby["spec"]["nodeName"]
    assert node != other
    users = replace(clients, through=through, node=other)
    sender, receiver = users.start("send", "POWER"), users.start("receive", "POWER")
    with nodes.without_power(node):
        cut = time.time()
        known = len(sender.notes())
        while len(sender.notes()) < known + 100 and time.time() < cut + 2 * GAP_SECONDS_MAX:
            time.sleep(0.5)
        time.sleep(AFTERWARDS_SECONDS)
        sender.end()
        confirmed = assert_nothing_lost(sender, receiver)
        what = f"power cut of the master's node, client through the {through}"
        record_gap(what, gap(sender.notes(), cut), GAP_SECONDS_MAX, confirmed)
    brokers.wait_settled()
