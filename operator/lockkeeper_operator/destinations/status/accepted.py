"""Accepted: the Destination may be on its Broker."""

from lockkeeper_operator.destinations.status.facts import DestinationFacts
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "Accepted"


def condition(facts: DestinationFacts) -> Verdict:
    """Return the condition."""
    if facts.invalid:
        return Verdict(TYPE, NO, "InvalidSpec", facts.invalid)
    if not facts.broker_there:
        return Verdict(TYPE, NO, "BrokerNotFound", f"there is no Broker {facts.broker}")
    if not facts.allowed:
        message = f"Broker {facts.broker} allows no Destinations of this namespace"
        return Verdict(TYPE, NO, "NotAllowed", message)
    if facts.holder:
        message = f"{facts.name} already belongs to Destination {facts.holder}"
        return Verdict(TYPE, NO, "NameTaken", message)
    if facts.foreign:
        message = f"{facts.name} existed before; set adoption to Allowed to take it over"
        return Verdict(TYPE, NO, "AlreadyThere", message)
    return Verdict(TYPE, YES, "Accepted", f"the Destination belongs to Broker {facts.broker}")
