"""The API: pydantic models of the Broker and Destination resources.

Comes in: YAML documents. Never here: how a resource is carried out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockkeeper_api.broker import Broker, BrokerSpec, default_broker
    from lockkeeper_api.destination import Destination, DestinationSpec
    from lockkeeper_api.documents import InvalidResourceError, Resources, combine, parse_resources
    from lockkeeper_api.policy import DestinationPolicy, DestinationPolicyEntry

_MODULES = {
    "broker": ("Broker", "BrokerSpec", "default_broker"),
    "destination": ("Destination", "DestinationSpec"),
    "documents": ("InvalidResourceError", "Resources", "combine", "parse_resources"),
    "policy": ("DestinationPolicy", "DestinationPolicyEntry"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    """Return a model, imported now: units are read without pydantic, see `units.py`."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
