"""Ready, of a Destination: accepted and in sync."""

from lockkeeper_operator.destinations.status import accepted, in_sync
from lockkeeper_operator.destinations.status.facts import DestinationFacts
from lockkeeper_operator.kubernetes.verdict import YES, Verdict

TYPE = "Ready"


def condition(facts: DestinationFacts) -> Verdict:
    """Return the condition."""
    deciding = accepted.condition(facts)
    if deciding.status == YES:
        deciding = in_sync.condition(facts)
    return Verdict(TYPE, deciding.status, deciding.reason, deciding.message)
