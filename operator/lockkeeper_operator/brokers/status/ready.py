"""Ready: clients are served, as the spec says."""

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.brokers.bootstrapping import BOOTSTRAP_FAILED, BOOTSTRAPPING
from lockkeeper_operator.brokers.desired.first_journal import BACKUP_MISSING, CLAIM_EXISTS
from lockkeeper_operator.brokers.observed import Pod
from lockkeeper_operator.brokers.status import master_elected, standbys_ready, storage_bound
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.children.steps import Conflict, Refused, Wait
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict
from lockkeeper_operator.names import MASTER

TYPE = "Ready"
NO_JOURNAL_YET = frozenset({BACKUP_MISSING, BOOTSTRAPPING, BOOTSTRAP_FAILED, CLAIM_EXISTS})
"""Reasons to wait with the first start."""
NO_ENDPOINT = "NoEndpoint"


def condition(facts: Facts) -> Verdict:
    """Return the condition. Clients are served without a standby, too; the reason tells."""
    for step in facts.steps:
        if isinstance(step, Conflict):
            message = f"{step.kind} {step.name} belongs to {step.owner}"
            return Verdict(TYPE, NO, "Conflict", message)
        if isinstance(step, Refused):
            message = f"{step.kind} {step.name} is refused: {step.message}"
            return Verdict(TYPE, NO, "Refused", message)
        if isinstance(step, Wait) and step.reason in NO_JOURNAL_YET:
            return Verdict(TYPE, NO, step.reason, step.message)
    broken = _broken_rollout(facts)
    if broken:
        return Verdict(TYPE, NO, "RolloutBroken", broken)
    for part in (storage_bound.condition(facts), master_elected.condition(facts)):
        if part.status != YES:
            return Verdict(TYPE, NO, part.reason, part.message)
    if facts.master is not None and not facts.master.reached:
        return Verdict(TYPE, NO, NO_ENDPOINT, _why_unreached(facts.master))
    standbys = standbys_ready.condition(facts)
    if standbys.status != YES:
        return Verdict(
            TYPE, YES, "NoSafetyNet", f"the master serves clients; standbys: {standbys.message}"
        )
    return Verdict(TYPE, YES, "Serving", "the master serves clients")


def failed(message: str) -> Verdict:
    """Return the condition of a resource about which the API server keeps answering no."""
    return Verdict(TYPE, NO, "Failed", message)


def _why_unreached(master: Pod) -> str:
    """Return why no Service leads to the master; new clients find nobody meanwhile."""
    if master.terminating:
        return f"no Service leads to the master: {master.name} is being stopped"
    return f"no Service leads to the master: {master.name} has no label {ROLE_LABEL}={MASTER}"


def _broken_rollout(facts: Facts) -> str:
    """Return what is broken about a roll-out, empty for nothing: clients may be served all the
    same, but what the spec says now does not run.
    """
    revision = facts.desired.revision
    behind = [pod.name for pod in facts.pods if pod.revision != revision]
    broken = [f"{pod.name}: {pod.hopeless}" for pod in facts.pods if pod.hopeless]
    if not behind or not broken:
        return ""
    return f"{'; '.join(broken)}; {', '.join(behind)} still without revision {revision}"


def invalid(problems: str) -> Verdict:
    """Return the condition of a resource whose spec is refused, with the reasons."""
    return Verdict(TYPE, NO, "InvalidSpec", problems)
