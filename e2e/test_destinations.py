"""Destinations from a folder in Git: applied, drifted, pruned."""

import json
from typing import Any

from brokers import API_VERSION, Brokers, broker
from kube import Manifest, Namespace, wait_until

DRIFT_SECONDS_MAX = 5.0
LABEL = {"app": "shop"}


def destination(resource: str, /, **spec: Any) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "Destination",
        "metadata": {"name": resource, "labels": LABEL},
        "spec": {"brokerRef": {"name": "orders"}, **spec},
    }


def reconciled(namespace: Namespace, *manifests: Manifest) -> None:
    """Apply a folder, and remove what is in it no more."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    namespace.kubectl(
        "apply", "--prune", "-l", "app=shop", "-f", "-",
        f"--prune-allowlist={API_VERSION}/Destination", given=json.dumps(items),
    )  # fmt: skip


REMOVE = """
import sys, urllib.request
token = open("/etc/lockkeeper-secrets/admin-token").read().strip()
request = urllib.request.Request(
    f"http://127.0.0.1:8161/api/v1/destinations/queues/{sys.argv[1]}?ifEmpty=false",
    method="DELETE", headers={"Authorization": f"Bearer {token}"},
)
urllib.request.urlopen(request)
"""


def remove_behind_its_back(brokers: Brokers, queue: str) -> None:
    master = brokers.master()["metadata"]["name"]
    brokers.namespace.kubectl("exec", master, "-c", "broker", "--", "python", "-c", REMOVE, queue)


def listed(brokers: Brokers) -> set[str]:
    """Return the names of the destinations that the master has."""
    text = brokers.namespace.kubectl(
        "exec", brokers.master()["metadata"]["name"], "-c", "broker", "--",
        "lockkeeper", "destinations", "--json",
    )  # fmt: skip
    return {each["name"] for each in json.loads(text)["destinations"]}


def test_destinations_are_made_repaired_and_pruned(brokers: Brokers) -> None:
    namespace = brokers.namespace
    namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    kept = destination("kept", name="SHOP.KEPT")
    gone = destination("gone", name="SHOP.GONE", deletionPolicy="DeleteIfEmpty")
    reconciled(namespace, kept, gone)
    for name in ("kept", "gone"):
        namespace.wait_ready("destination", name)
    assert {"SHOP.KEPT", "SHOP.GONE"} <= listed(brokers)
    remove_behind_its_back(brokers, "SHOP.KEPT")
    taken = wait_until(
        "the removed queue is there again",
        lambda: "SHOP.KEPT" in listed(brokers),
        DRIFT_SECONDS_MAX,
    )
    print(f"drift repaired after {taken:.1f} s")
    reconciled(namespace, kept)
    wait_until("the pruned one is gone", lambda: not namespace.get("destination", "gone"))
    wait_until("its queue is gone", lambda: "SHOP.GONE" not in listed(brokers))
    assert "SHOP.KEPT" in listed(brokers)
