"""The master's node is cordoned: it hands over before anybody drains that node."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost, gap
from kube import kubectl_command, run
from measures import record_gap

GAP_SECONDS_MAX = 2.0
AFTERWARDS_SECONDS = 5.0


def test_a_master_leaves_a_cordoned_node_and_its_pod_stays(
    brokers: Brokers, clients: Clients
) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    sender, receiver = clients.start("send", "DRAINED"), clients.start("receive", "DRAINED")
    before, master = brokers.pod_uids(), brokers.master()
    began = time.time()
    with cordoned(master["spec"]["nodeName"]):
        brokers.wait_other_master(master["metadata"]["name"])
        brokers.wait_settled()
        time.sleep(AFTERWARDS_SECONDS)
        sender.end()
        confirmed = assert_nothing_lost(sender, receiver)
        record_gap(
            "cordon of the master's node", gap(sender.notes(), began), GAP_SECONDS_MAX, confirmed
        )
        assert brokers.pod_uids() == before
    brokers.wait_settled()


@contextmanager
def cordoned(node: str) -> Iterator[None]:
    """Cordon a node for a while."""
    run([*kubectl_command(), "cordon", node])
    try:
        yield
    finally:
        run([*kubectl_command(), "uncordon", node])
