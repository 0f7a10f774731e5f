"""Looks at one BrokerNetwork: observes, applies its Secret, wakes its Brokers, tells."""

from collections.abc import Callable, Mapping

from pydantic import ValidationError

from lockkeeper_api.broker_network import BrokerNetworkSpec
from lockkeeper_operator.kubernetes.api.kinds import SECRET
from lockkeeper_operator.kubernetes.children.child_steps import Children, child_steps
from lockkeeper_operator.kubernetes.children.steps import Conflict
from lockkeeper_operator.kubernetes.children.unwatched import UnwatchedChildren
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import INSTANCE_LABEL
from lockkeeper_operator.networks.desired import secret
from lockkeeper_operator.networks.desired.network import BrokerKey, Network
from lockkeeper_operator.networks.events import events_of
from lockkeeper_operator.networks.observing import NetworkObserver, network_of
from lockkeeper_operator.networks.plan import Membership
from lockkeeper_operator.networks.status.facts import NetworkFacts
from lockkeeper_operator.networks.status.status import invalid_status, network_status
from lockkeeper_operator.tools import Tools

OTHERS_SECONDS = 30.0
"""How often a network is looked at whose Secret's name somebody else has."""


class NetworkReconciler:
    """Brings BrokerNetworks to what they are to be; *wake* has a Broker looked at.

    What a network asks of its Brokers, these find out themselves when they are looked at.
    """

    def __init__(
        self, tools: Tools, observer: NetworkObserver, wake: Callable[[BrokerKey], None]
    ) -> None:
        self._tools, self._observer, self._wake = tools, observer, wake
        self._children = UnwatchedChildren(tools.api, INSTANCE_LABEL, (SECRET,))
        self._asked: dict[tuple[str, str], Mapping[BrokerKey, str]] = {}
        """What each network asked of its Brokers last, as hashes."""

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Look at a network; returns the seconds after which to look again at the latest.

        Raises ApiError for what may work later.
        """
        resource = self._tools.caches.networks.get(namespace, name)
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            # Its Secret goes with it, by Kubernetes' own doing.
            self._observer.forget(namespace, name)
            self._ask((namespace, name), {})
            return None
        try:
            network = network_of(resource)
        except ValidationError as error:
            self._ask((namespace, name), {})
            await self._tools.refuse(resource, BrokerNetworkSpec, error, invalid_status)
            return None
        membership = await self._observer.membership(network)
        refused = await self._keep_secret(network)
        self._ask((namespace, name), await self._asked_of(network, membership))
        await self._tell(resource, network, membership, refused)
        return OTHERS_SECONDS if refused else None

    async def _keep_secret(self, network: Network) -> str:
        """Bring the Secret to what it is to be; returns what keeps it from that, or nothing."""
        namespace, name = network.namespace, network.secret
        wanted = secret.build(network, await self._observer.password(network))
        present = self._tools.caches.children[SECRET.name].get(namespace, name)
        if present is None:
            present = await self._tools.api.read_if_there(SECRET, namespace, name)
        there = {} if present is None else {(SECRET.name, name): present}
        steps = tuple(child_steps(network.owner, [wanted], Children(there)))
        for step in steps:
            if isinstance(step, Conflict):
                return f"Secret {name} belongs to {step.owner}: give the network another name"
        refused, _ = await self._children.carry_out(steps, namespace)
        return "; ".join(f"Secret {each.name}: {each.message}" for each in refused)

    async def _asked_of(self, network: Network, membership: Membership) -> dict[BrokerKey, str]:
        """Return what the network asks of each of its Brokers, as a hash."""
        found = {}
        for member in membership.members:
            part = await self._observer.part(network, membership, member.key)
            connectors = [each.model_dump(mode="json") for each in part.connectors]
            replay = part.bridge_filter and part.bridge_filter.model_dump(mode="json")
            asked = [part.user, part.password, connectors, dict(part.authorities), replay]
            found[member.key] = hash_of([*asked, part.dialled_by, part.is_duplex])
        return found

    def _ask(self, network: tuple[str, str], asked: Mapping[BrokerKey, str]) -> None:
        """Wake the Brokers of which something else is asked than before."""
        before = self._asked.pop(network, {})
        if asked:
            self._asked[network] = asked
        for broker in before.keys() | asked.keys():
            if before.get(broker) != asked.get(broker):
                self._wake(broker)

    async def _tell(
        self, resource: Manifest, network: Network, membership: Membership, refused: str
    ) -> None:
        previous, metadata = resource.get("status", {}), resource["metadata"]
        is_told = previous.get("observedGeneration") == metadata["generation"]
        if is_told and not self._observer.is_heard_of(membership):
            # Not everybody was asked yet since this process began: what was told still counts.
            return
        facts = NetworkFacts(network, membership, self._observer.said(membership), refused)
        now = self._tools.clock.text()
        status = network_status(facts, previous, metadata["generation"], now)
        if status is not None:
            await self._tools.write_status(resource, status)
            for event in events_of(previous, status):
                await self._tools.recorder.tell(resource, event)
