"""Last change of the master: its time and its cause."""

from typing import Any

from lockkeeper_api.status import Failover
from lockkeeper_operator.brokers.observed import Pod
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.names import FENCED


def last_failover(facts: Facts, previous: dict[str, Any], now: str) -> Failover | None:
    """Return the last change of the master: a new one, or what *previous* says of an earlier one.

    While there is no master nothing has changed yet. The first master of all is no change, nor is
    its epoch, of which it may tell later.
    """
    known = previous.get("lastFailover")
    master, before = facts.master, previous.get("master")
    epoch = None if master is None or master.report is None else master.report.epoch
    term = previous.get("epoch")
    same_term = epoch is None or term is None or epoch == term
    if master is None or before is None or (master.name == before and same_term):
        return None if known is None else Failover.model_validate(known)
    return Failover(time=now, cause=_cause(before, facts))


def _cause(before: str, facts: Facts) -> str:
    """Return what became of the old master, as far as it can be seen."""
    found: Pod | None = next((pod for pod in facts.observed.pods if pod.name == before), None)
    if found is None:
        return f"{before} is gone"
    if found.terminating:
        return f"{before} was stopped"
    if found.role == FENCED:
        if facts.observed.must_leave(found):
            return f"{before} handed over: it must leave its node"
        return f"{before} was fenced"
    if found.trouble:
        return f"{before}: {found.trouble}"
    if not found.ready:
        return f"{before} is not ready"
    return f"{before} started anew or lost the lock"
