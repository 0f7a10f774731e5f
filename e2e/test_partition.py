"""The master's node loses its network: the master lives on, and must not acknowledge."""

import itertools
import time
from dataclasses import replace

from brokers import Brokers, broker
from clients import Client, Clients, assert_nothing_lost, gap
from measures import record_gap
from nodes import Nodes

GAP_SECONDS_MAX = 20.0
CUT_SECONDS = 30.0


def test_a_master_that_is_cut_off_acknowledges_nothing_once_there_is_another(
    brokers: Brokers, clients: Clients, nodes: Nodes
) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    master = brokers.master()
    (standby,) = brokers.with_role("standby")
    node, other = master["spec"]["nodeName"], standby["spec"]["nodeName"]
    outside = replace(clients, node=other)
    # On the master's own node, past the Service: nothing is between this client and the master.
    inside = replace(clients, node=node, host=master["status"]["podIP"])
    sender = outside.start("send", "OUTSIDE")
    isolated = inside.start("send", "INSIDE")
    with nodes.without_network(node):
        cut = time.time()
        time.sleep(CUT_SECONDS)
        brokers.wait_other_master(master["metadata"]["name"])
    inside_receiver = outside.start("receive", "INSIDE")
    outside_receiver = outside.start("receive", "OUTSIDE")
    sender.end()
    confirmed = assert_nothing_lost(sender, outside_receiver)
    record_gap(
        "network cut of the master's node", gap(sender.notes(), cut), GAP_SECONDS_MAX, confirmed
    )
    took_over = first_of_the_successor(sender, cut)
    late = [note for note in isolated.notes() if took_over < note.at < cut + CUT_SECONDS]
    assert late == [], "the master that was cut off acknowledged after its successor began"
    # Its master is a standby now; what it was confirmed is all that there ever will be.
    assert_nothing_lost(isolated, inside_receiver)
    brokers.wait_settled()


def first_of_the_successor(sender: Client, cut: float) -> float:
    """Return when the first message was confirmed after the longest silence since *cut*."""
    times = [note.at for note in sender.notes()]
    silences = [
        (later - earlier, later) for earlier, later in itertools.pairwise(times) if later > cut
    ]
    return max(silences)[1]
