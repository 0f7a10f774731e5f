"""Facts from which the status of a network follows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lockkeeper_operator.networks.desired.connectors import connector_name
from lockkeeper_operator.networks.desired.network import BrokerKey, Link, Network
from lockkeeper_operator.networks.plan import Membership
from lockkeeper_operator.polling.report import BridgeReport

NOT_YET = "the dialling Broker does not have it yet"
SILENT = "the dialling Broker has no master that answers"
DIALS = "it is being dialled"


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge as its dialling Broker tells of it; *failure* is why it is not *connected*."""

    link: Link
    connected: bool
    failure: str = ""


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """A network: who is in it, and what their masters say of their bridges.

    *said* has no Broker whose master does not answer. *refused* is what is wrong with the Secret
    of the network's user, empty for nothing.
    """

    network: Network
    membership: Membership
    said: Mapping[BrokerKey, tuple[BridgeReport, ...]] = field(default_factory=dict)
    refused: str = ""

    def bridges(self) -> Iterator[Bridge]:
        """Yield all bridges that are to be there."""
        for link in self.membership.links:
            said = self._report(link)
            if said is not None:
                yield Bridge(link, said.connected, said.failure or DIALS)
            else:
                silent = link.dialler.key not in self.said
                yield Bridge(link, False, SILENT if silent else NOT_YET)

    def reports(self, broker: BrokerKey) -> list[BridgeReport]:
        """Return what a Broker says of its bridges of this network."""
        own = (link for link in self.membership.links if link.dialler.key == broker)
        return [said for said in map(self._report, own) if said is not None]

    def _report(self, link: Link) -> BridgeReport | None:
        name = connector_name(self.network, link)
        said = self.said.get(link.dialler.key, ())
        return next((each for each in said if each.name == name), None)
