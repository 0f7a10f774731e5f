"""The master is stopped cleanly, as drains and upgrades do: the standby goes on at once."""

import time
from dataclasses import replace

import pytest
from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost, gap
from measures import record_gap

GAP_SECONDS_MAX = 2.0
AFTERWARDS_SECONDS = 5.0


@pytest.mark.parametrize("through", ["service", "uri"])
def test_a_clean_stop_is_hardly_noticed(brokers: Brokers, clients: Clients, through: str) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    users = replace(clients, through=through)
    sender, receiver = users.start("send", "CLEAN"), users.start("receive", "CLEAN")
    master = brokers.master()["metadata"]["name"]
    began = time.time()
    brokers.namespace.delete("pod", master, "--wait=false")
    brokers.wait_other_master(master)
    time.sleep(AFTERWARDS_SECONDS)
    sender.end()
    confirmed = assert_nothing_lost(sender, receiver)
    what = f"clean switch-over, client through the {through}"
    record_gap(what, gap(sender.notes(), began), GAP_SECONDS_MAX, confirmed)
    brokers.wait_settled()
