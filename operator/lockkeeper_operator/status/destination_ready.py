"""Ready, of a Destination: accepted and in sync."""

from lockkeeper_operator.kubernetes.verdict import YES, Verdict
from lockkeeper_operator.status import destination_accepted, destination_in_sync
from lockkeeper_operator.status.destination_facts import DestinationFacts

TYPE = "Ready"


def condition(facts: DestinationFacts) -> Verdict:
    """Return the condition."""
    accepted, in_sync = destination_accepted.condition(facts), destination_in_sync.condition(facts)
    deciding = in_sync if accepted.status == YES else accepted
    return Verdict(TYPE, deciding.status, deciding.reason, deciding.message)
