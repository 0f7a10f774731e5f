"""A change that needs a restart: standbys first, switch over, the old master last."""

import time
from typing import Any

from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost, gap
from kube import wait_until
from measures import record_gap

GAP_SECONDS_MAX = 2.0
AFTERWARDS_SECONDS = 3.0
RESOURCES: dict[str, Any] = {"requests": {"cpu": "60m", "memory": "96Mi"}}


def test_pods_are_replaced_one_after_the_other(brokers: Brokers, clients: Clients) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    sender, receiver = clients.start("send", "ROLLING"), clients.start("receive", "ROLLING")
    master = brokers.master()["metadata"]["name"]
    (standby,) = (pod["metadata"]["name"] for pod in brokers.with_role("standby"))
    before = brokers.pod_uids()
    began = time.time()
    brokers.namespace.patch("broker", brokers.name, {"spec": {"resources": RESOURCES}})
    wait_until("the standby is replaced", lambda: _replaced(brokers, standby, before))
    assert not _replaced(brokers, master, before), "the master went before its standby"
    wait_until("the master is replaced", lambda: _replaced(brokers, master, before))
    brokers.wait_settled()
    time.sleep(AFTERWARDS_SECONDS)
    sender.end()
    confirmed = assert_nothing_lost(sender, receiver)
    assert brokers.master()["metadata"]["name"] == standby
    for pod in brokers.pods():
        assert pod["spec"]["containers"][0]["resources"]["requests"] == RESOURCES["requests"]
    record_gap("rolling change", gap(sender.notes(), began), GAP_SECONDS_MAX, confirmed)


def test_a_supervised_change_waits_for_its_approval(brokers: Brokers) -> None:
    brokers.namespace.apply(broker(brokers.name, update={"strategy": "Supervised"}))
    brokers.wait_settled()
    master = brokers.master()["metadata"]["name"]
    before = brokers.pod_uids()
    brokers.namespace.patch("broker", brokers.name, {"spec": {"resources": RESOURCES}})
    (standby,) = before.keys() - {master}
    wait_until("the standby is replaced", lambda: _replaced(brokers, standby, before))
    wait_until("the change waits", lambda: "lockkeeper.dev/approve=" in _upgrading(brokers))
    revision = _upgrading(brokers).partition("lockkeeper.dev/approve=")[2].split()[0]
    assert not _replaced(brokers, master, before)
    brokers.namespace.kubectl(
        "annotate", "broker", brokers.name, f"lockkeeper.dev/approve={revision}"
    )
    wait_until("the master is replaced", lambda: _replaced(brokers, master, before))
    brokers.wait_settled()


def _replaced(brokers: Brokers, pod: str, before: dict[str, str]) -> bool:
    return brokers.pod_uids().get(pod, before[pod]) != before[pod]


def _upgrading(brokers: Brokers) -> str:
    resource = brokers.resource() or {}
    found = resource.get("status", {}).get("conditions", ())
    return next((each["message"] for each in found if each["type"] == "Upgrading"), "")
