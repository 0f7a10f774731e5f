"""Networks and Brokers in them, as plans are made from them."""

from typing import Any

from lockkeeper_api.broker import BrokerSpec
from lockkeeper_api.broker_network import BrokerNetworkSpec
from lockkeeper_operator.networks.desired.network import Network
from lockkeeper_operator.networks.observed import Candidate


def network(namespace: str = "shop", name: str = "net", **spec: Any) -> Network:
    said = {"brokers": {"selector": {"matchLabels": {"net": "yes"}}}, **spec}
    return Network(namespace, name, "uid-of-net", BrokerNetworkSpec.model_validate(said))


def candidate(
    name: str, namespace: str = "shop", allowed: bool = True, created: str = "", **spec: Any
) -> Candidate:
    return Candidate(namespace, name, created, BrokerSpec.model_validate(spec), allowed)
