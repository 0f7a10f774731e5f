"""The tree of `kubectl lockkeeper status` tells what a person looks for first."""

import io
from typing import Any

from rich.console import Console

from lockkeeper.cli.cluster.objects import BrokerObjects
from lockkeeper.cli.cluster.status import tree

NOON = 1_800_014_400.0
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Serving",
    "message": "the master serves clients",
}


def pod(name: str, role: str | None, **status: Any) -> dict[str, Any]:
    labels = {"lockkeeper.dev/role": role} if role else {}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": "node1"},
        "status": {"startTime": "2027-01-15T11:48:00Z", "conditions": conditions, **status},
    }


def broker(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "orders", "namespace": "shop"},
        "status": {"conditions": list(conditions), **status},
    }


def shown(found: BrokerObjects) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(tree(found, NOON))
    return text.getvalue()


def test_a_pair_that_serves() -> None:
    lease = {
        "spec": {
            "holderIdentity": "orders-0_1234",
            "leaseTransitions": 7,
            "renewTime": "2027-01-15T11:59:59.000000Z",
        }
    }
    claim = {
        "metadata": {"name": "orders-journal"},
        "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}},
    }
    queue = {
        "metadata": {"name": "incoming"},
        "spec": {"brokerRef": {"name": "orders"}, "kind": "Queue", "name": "orders.in"},
        "status": {"conditions": [READY], "depth": 1204, "consumers": 3, "name": "orders.in"},
    }
    pods = [pod("orders-0", "master"), pod("orders-1", "standby")]
    text = shown(BrokerObjects(broker(READY), pods, lease, claim, [queue]))
    for line in (
        "orders  Serving: the master serves clients",
        "orders-0  master  node1  ready  12 min 0 s",
        "orders-1  standby  node1  ready  12 min 0 s",
        "lock  Lease, held by orders-0, epoch 7, renewed 1 s ago",
        "journal  claim orders-journal, 10Gi, Bound",
        "Queue orders.in  Serving  1,204 messages  3 consumers",
    ):
        assert line in text


def test_its_networks_have_a_line_each() -> None:
    def network(name: str, **member: Any) -> dict[str, Any]:
        said = {"namespace": "shop", "name": "orders", "stranded": 0, **member}
        return {"metadata": {"name": name}, "status": {"members": [said]}}

    networks = [
        network("near", bridges={"expected": 2, "connected": 2}),
        network("far", bridges={"expected": 1, "connected": 0}, stranded=10),
    ]
    text = shown(BrokerObjects(broker(READY), [], None, None, [], networks))
    assert "network near  2 of 2 bridges connected" in text
    assert "network far  0 of 1 bridge connected  at least 10 messages stranded" in text


def test_one_in_trouble_says_what_it_is() -> None:
    waiting = {"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    upgrading = {
        "type": "Upgrading", "status": "True", "reason": "PodStarts",
        "message": "waits for orders-1",
    }  # fmt: skip
    down = {"type": "Ready", "status": "False", "reason": "NoMaster", "message": "no pod leads"}
    found = BrokerObjects(
        broker(down, upgrading, lastFailover={"time": "2027-01-15T11:00:00Z", "cause": "killed"}),
        [pod("orders-0", None, containerStatuses=[waiting])],
        None,
        None,
        [],
    )
    text = shown(found)
    for line in (
        "orders  NoMaster: no pod leads",
        "Upgrading: waits for orders-1",
        "last failover 2027-01-15T11:00:00Z: killed",
        "orders-0  no role yet  node1  CrashLoopBackOff  12 min 0 s  4 restarts",
        "lock  the file's alone, no Lease",
        "destinations  0 resources",
    ):
        assert line in text
