"""The status of a Broker."""

from typing import Any

from lockkeeper_api.status import Binding, BrokerStatus
from lockkeeper_operator.brokers.status import (
    configuration_applied,
    exposed,
    master_elected,
    paused,
    ready,
    reconciling,
    standbys_ready,
    storage_bound,
    upgrading,
)
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.brokers.status.failover import last_failover
from lockkeeper_operator.kubernetes.conditions import dated
from lockkeeper_operator.kubernetes.verdict import NO, Verdict
from lockkeeper_operator.names import INSTANCE_LABEL, NAME_LABEL

CONDITIONS = (
    ready.condition,
    master_elected.condition,
    standbys_ready.condition,
    storage_bound.condition,
    configuration_applied.condition,
    exposed.condition,
    upgrading.condition,
    paused.condition,
    reconciling.reconciling,
    reconciling.stalled,
)


def broker_status(
    facts: Facts, previous: dict[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status to be written, None if *previous* says the same already."""
    verdicts = [condition(facts) for condition in CONDITIONS]
    report = None if facts.master is None else facts.master.report
    name = facts.desired.name
    status = BrokerStatus(
        observed_generation=generation,
        conditions=dated(verdicts, previous, generation, now),
        replicas=len(facts.observed.pods),
        selector=f"{NAME_LABEL}=lockkeeper,{INSTANCE_LABEL}={name}",
        master=_master(facts, previous),
        epoch=_epoch(facts, previous),
        last_failover=last_failover(facts, previous, now),
        configuration=previous.get("configuration") if report is None else report.configuration,
        revision=facts.desired.revision,
        version=previous.get("version") if report is None else report.version,
        binding=Binding(name=f"{name}-client"),
    )
    return _if_changed(status, previous)


def invalid_status(
    problems: str, previous: dict[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status of a Broker whose spec is refused; the rest of it stays as it was."""
    return _stuck_status(ready.invalid(problems), previous, generation, now)


def failed_status(
    message: str, previous: dict[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status of a Broker at which the operator cannot work; the rest stays as it was."""
    return _stuck_status(ready.failed(message), previous, generation, now)


def _stuck_status(
    verdict: Verdict, previous: dict[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status in which only this Ready, and what follows from it, is new."""
    stopped = Verdict(reconciling.RECONCILING, NO, "Stalled", verdict.message)
    found = [verdict, stopped, reconciling.stalled_by(verdict)]
    types = {each.type for each in found}
    others = [each for each in previous.get("conditions", ()) if each["type"] not in types]
    status = BrokerStatus.model_validate({**previous, "conditions": others})
    conditions = dated(found, previous, generation, now)
    changed = status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": [*conditions, *status.conditions],
        }
    )
    return _if_changed(changed, previous)


def _master(facts: Facts, previous: dict[str, Any]) -> str | None:
    """Return the master; the last one, while it is being found out who is the next."""
    if facts.desired.hibernated:
        return None
    return facts.master.name if facts.master is not None else previous.get("master")


def _epoch(facts: Facts, previous: dict[str, Any]) -> int | None:
    """Return the last term that was told of: a master that stops tells none any more."""
    report = None if facts.master is None else facts.master.report
    return previous.get("epoch") if report is None or report.epoch is None else report.epoch


def _if_changed(status: BrokerStatus, previous: dict[str, Any]) -> dict[str, Any] | None:
    written: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return None if written == previous else written
