"""Other policies for destinations that are there already, without a restart."""

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.destination import ANY_DESCENDANT, Destination


def adopt_policies(broker: Broker, policies: PolicyMap) -> None:
    """Go by *policies* from now on, at every destination; those in `own` stay as they are.

    Raises BrokerError, with nothing changed, for what only a restart can bring.
    """
    broker.schedulers.prepare_redelivery(policies)
    policies.own = broker.context.policies.own
    broker.context.policies = policies
    for region in broker.registry:
        _adopt(region, policies)


def adopt_own_policy(
    broker: Broker, destination: Destination, policy: DestinationPolicy | None
) -> None:
    """Give one destination, there or not, a policy of its own; None: that of the entries.

    Raises BrokerError, with nothing changed, for what only a restart can bring.
    """
    policies = broker.context.policies
    if policy is None:
        policies.own.pop(destination, None)
    else:
        broker.schedulers.prepare_redelivery(PolicyMap([PolicyEntry(ANY_DESCENDANT, None, policy)]))
        policies.own[destination] = policy
    region = broker.registry.find(destination)
    if region is not None:
        _adopt(region, policies)


def _adopt(region: Queue | Topic, policies: PolicyMap) -> None:
    policy = policies.find(region.destination)
    if policy != region.policy:
        region.adopt(policy)
