"""InSync: the broker has the destination, and treats it as the resource says."""

from lockkeeper_operator.destinations.status import accepted
from lockkeeper_operator.destinations.status.facts import DestinationFacts
from lockkeeper_operator.kubernetes.verdict import NO, UNKNOWN, YES, Verdict

TYPE = "InSync"


def condition(facts: DestinationFacts) -> Verdict:
    """Return the condition."""
    if accepted.condition(facts).status != YES:
        return Verdict(
            TYPE, UNKNOWN, "NotAccepted", "the operator waits until the Destination is accepted"
        )
    if not facts.broker_answers:
        return Verdict(TYPE, UNKNOWN, "BrokerUnavailable", f"Broker {facts.broker} has no master")
    if facts.figures is None:
        return Verdict(TYPE, NO, "Missing", f"the broker does not have {facts.name}")
    if not facts.in_sync:
        return Verdict(
            TYPE, NO, "PolicyDiffers", "the broker has another policy for the destination"
        )
    return Verdict(TYPE, YES, "InSync", f"{facts.name} is as the resource says")
