"""Two Brokers in a network: messages cross, a fail-over loses none, one Broker leaves for good."""

import signal
import time
from dataclasses import replace

from brokers import API_VERSION, Brokers, broker
from clients import Clients, assert_nothing_lost, gap
from kube import Manifest, Namespace, condition, wait_until
from measures import record_gap
from signals import Signals

NETWORK = "pairs"
CONNECTED_SECONDS_MAX = 240.0
"""Kubelets take up to two minutes to bring a new Secret to running pods."""
GAP_SECONDS_MAX = 10.0
AFTERWARDS_SECONDS = 10.0
LABELS = {"example.com/network": NETWORK}


def network() -> Manifest:
    """Return a network of the Brokers with the label."""
    return {
        "apiVersion": API_VERSION,
        "kind": "BrokerNetwork",
        "metadata": {"name": NETWORK},
        "spec": {"brokers": {"selector": {"matchLabels": LABELS}}},
    }


def labelled(name: str, replicas: int) -> Manifest:
    """Return a Broker of the network."""
    found = broker(name, replicas=replicas)
    found["metadata"]["labels"] = LABELS
    return found


def wait_bridged(namespace: Namespace) -> float:
    """Wait until all bridges are connected; returns the seconds that it took."""
    return wait_until(
        "the network is Ready",
        lambda: condition(namespace.get("brokernetwork", NETWORK), "Ready") == "True",
        CONNECTED_SECONDS_MAX,
    )


def bridges(namespace: Namespace) -> dict[str, int]:
    """Return how many bridges there are to be, and are."""
    resource = namespace.get("brokernetwork", NETWORK)
    found: dict[str, int] = (resource or {}).get("status", {}).get("bridges", {})
    return found


def reasons(namespace: Namespace) -> set[str]:
    """Return the reasons of all events."""
    return {event["reason"] for event in namespace.items("events")}


def test_a_fail_over_of_the_other_pair_loses_nothing(
    brokers: Brokers, clients: Clients, signals: Signals
) -> None:
    namespace, other = brokers.namespace, Brokers(brokers.namespace, "billing")
    namespace.apply(labelled(brokers.name, 2), labelled(other.name, 2))
    brokers.wait_settled()
    other.wait_settled()
    before = brokers.lives() | other.lives()
    namespace.apply(network())
    print(f"bridges are connected after {wait_bridged(namespace):.0f} s")
    assert bridges(namespace) == {"expected": 2, "connected": 2}
    assert brokers.lives() | other.lives() == before

    receiver = replace(clients, broker=other.name).start_silent("receive", "CROSSED")
    sender = clients.start("send", "CROSSED")
    wait_until("a message has crossed", receiver.notes)
    master = other.master()
    killed = signals.send(master, signal.SIGKILL)
    other.wait_other_master(master["metadata"]["name"])
    time.sleep(AFTERWARDS_SECONDS)
    sender.end()
    confirmed = assert_nothing_lost(sender, receiver)
    what = "SIGKILL of the master behind a bridge, as its consumer sees it"
    record_gap(what, gap(receiver.notes(), killed), GAP_SECONDS_MAX, confirmed)
    wait_bridged(namespace)


def test_a_broker_that_leaves_for_good_is_let_go_of(brokers: Brokers, clients: Clients) -> None:
    namespace, other = brokers.namespace, Brokers(brokers.namespace, "billing")
    namespace.apply(labelled(brokers.name, 1), labelled(other.name, 1))
    brokers.wait_ready()
    other.wait_ready()
    namespace.apply(network())
    wait_bridged(namespace)
    lives = brokers.lives()

    namespace.delete("broker", other.name)
    wait_until(
        "no bridge is expected", lambda: bridges(namespace) == {"expected": 0, "connected": 0}
    )
    wait_until(
        "nobody dials it", lambda: namespace.get("secret", f"{brokers.name}-networks") is None
    )
    wait_until(
        "the other Broker goes by that", lambda: brokers.condition("ConfigurationApplied") == "True"
    )
    assert "networkConnectors" not in str(namespace.get("configmap", brokers.name))
    assert brokers.lives() == lives
    wait_until("it is told", lambda: reasons(namespace) & {"BrokerLeft", "MessagesLeftBehind"})

    sender, receiver = clients.start("send", "ALONE"), clients.start("receive", "ALONE")
    sender.end()
    assert_nothing_lost(sender, receiver)
