"""Secret NETWORK-network: the user of a network, and its password."""

from lockkeeper_api.meta import API_VERSION
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    PART_OF_LABEL,
)
from lockkeeper_operator.networks.desired.network import Network


def build(network: Network, password: str) -> Manifest:
    """Return the Secret; it goes with its network."""
    labels = {
        NAME_LABEL: "lockkeeper-network",
        INSTANCE_LABEL: network.instance,
        COMPONENT_LABEL: "network",
        PART_OF_LABEL: "lockkeeper",
        MANAGED_BY_LABEL: "lockkeeper-operator",
    }
    owner = {
        "apiVersion": API_VERSION,
        "kind": "BrokerNetwork",
        "name": network.name,
        "uid": network.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": network.secret,
            "namespace": network.namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "type": "kubernetes.io/basic-auth",
        "data": encoded({"username": network.user, "password": password}),
    }
