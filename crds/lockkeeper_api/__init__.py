"""The API: pydantic models of the Broker and Destination resources.

Comes in: YAML documents. Never here: how a resource is carried out.
"""

from lockkeeper_api.broker import Broker, BrokerSpec, default_broker
from lockkeeper_api.destination import Destination, DestinationSpec
from lockkeeper_api.documents import InvalidResourceError, Resources, combine, parse_resources
from lockkeeper_api.policy import DestinationPolicy, DestinationPolicyEntry

__all__ = [
    "Broker",
    "BrokerSpec",
    "Destination",
    "DestinationPolicy",
    "DestinationPolicyEntry",
    "DestinationSpec",
    "InvalidResourceError",
    "Resources",
    "combine",
    "default_broker",
    "parse_resources",
]
