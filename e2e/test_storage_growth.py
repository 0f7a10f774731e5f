"""A claim grows while brokers run."""

import pytest
from brokers import Brokers, broker
from kube import Namespace, wait_until

DEFAULT = "storageclass.kubernetes.io/is-default-class"


def default_class_can_grow(namespace: Namespace) -> bool:
    return any(
        each["metadata"].get("annotations", {}).get(DEFAULT) == "true"
        and each.get("allowVolumeExpansion", False)
        for each in namespace.items("storageclasses")
    )


def test_a_claim_grows_without_a_restart(brokers: Brokers) -> None:
    if not default_class_can_grow(brokers.namespace):
        pytest.skip("claims of the default StorageClass cannot grow here")
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    before = brokers.pod_uids()
    brokers.namespace.patch("broker", brokers.name, {"spec": {"storage": {"size": "2Gi"}}})

    def capacity() -> str:
        claim = brokers.namespace.get("pvc", f"{brokers.name}-journal")
        return str(claim["status"]["capacity"]["storage"]) if claim else ""

    wait_until("the claim has grown", lambda: capacity() == "2Gi")
    brokers.wait_settled()
    assert brokers.condition("StorageBound") == "True"
    assert brokers.pod_uids() == before
