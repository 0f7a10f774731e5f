"""StandbysReady: all other brokers are proven able to take over. A standby is no failure."""

from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "StandbysReady"


def condition(facts: Facts) -> Verdict:
    """Return the condition."""
    if facts.desired.hibernated:
        return Verdict(TYPE, NO, "Hibernated", "spec.hibernated is set: no pods run")
    wanted = len(facts.desired.pods) - 1
    if wanted == 0:
        return Verdict(TYPE, YES, "NoneWanted", "spec.replicas is 1: no standby is wanted")
    able = [pod.name for pod in facts.pods if pod.takes_over]
    if len(able) >= wanted:
        return Verdict(TYPE, YES, "Proven", f"{', '.join(able)} can take over")
    message = f"{len(able)} of {wanted} standbys are proven able to take over"
    if facts.desired.fenced:
        message += f"; fenced: {', '.join(sorted(facts.desired.fenced))}"
    return Verdict(TYPE, NO, "NotProven", message)
