"""Standing of a network: connected, on its way, or waiting for a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lockkeeper_operator.networks.desired.network import BrokerKey
from lockkeeper_operator.networks.plan import BROKER_NOT_FOUND
from lockkeeper_operator.networks.status.facts import Bridge, NetworkFacts

SHOWN = 3
"""How many of several a message tells of."""
MEMBERS_MIN = 2


@dataclass(frozen=True, slots=True)
class Standing:
    """One of the three, and why: a word for tools, a sentence for people."""

    kind: Literal["Ready", "Reconciling", "Stalled"]
    reason: str
    message: str


def standing_of(facts: NetworkFacts) -> Standing:
    """Return where a network stands. Bridges of those who are in it go on, whoever is kept out."""
    membership = facts.membership
    if facts.refused:
        return Standing("Stalled", "Refused", facts.refused)
    kept_out = [each for each in membership.refusals if each.reason != BROKER_NOT_FOUND]
    if kept_out:
        told = _some([f"{_shown(each.broker)}: {each.message}" for each in kept_out])
        return Standing("Stalled", kept_out[0].reason, told)
    if membership.refusals:
        told = _some([_shown(each.broker) for each in membership.refusals])
        return Standing("Reconciling", BROKER_NOT_FOUND, f"there is no Broker {told}")
    if len(membership.members) < MEMBERS_MIN:
        message = f"a network takes {MEMBERS_MIN} Brokers, and has {len(membership.members)}"
        return Standing("Reconciling", "TooFewBrokers", message)
    return _connected(facts)


def _connected(facts: NetworkFacts) -> Standing:
    """Return where a network stands of which nothing keeps anybody out."""
    bridges = list(facts.bridges())
    missing = [each for each in bridges if not each.connected]
    if missing:
        told = _some([_told(each) for each in missing])
        message = f"{len(missing)} of {len(bridges)} bridges are not connected: {told}"
        return Standing("Reconciling", "BridgesDown", message)
    brokers = len(facts.membership.members)
    message = f"{brokers} Brokers have {len(bridges)} bridges, all connected"
    return Standing("Ready", "Connected", message)


def _told(bridge: Bridge) -> str:
    link = bridge.link
    return f"{_shown(link.dialler.key)} to {_shown(link.dialled.key)}: {bridge.failure}"


def _shown(broker: BrokerKey) -> str:
    return "/".join(broker)


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - SHOWN
    return "; ".join(texts[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
