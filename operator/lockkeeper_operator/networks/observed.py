"""Observed state of a network: the Brokers that may be in it."""

from dataclasses import dataclass

from lockkeeper_api.broker import BrokerSpec
from lockkeeper_operator.networks.desired.network import BrokerKey


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Broker that is named or selected. One without a *spec* has none that can be read.

    *allowed* says that it lets networks of the network's namespace in.
    """

    namespace: str
    name: str
    created: str = ""
    spec: BrokerSpec | None = None
    allowed: bool = True

    @property
    def key(self) -> BrokerKey:
        """Its namespace and name."""
        return self.namespace, self.name
