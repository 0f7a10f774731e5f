"""The status of a network: three conditions, as kstatus reads them, its Brokers and bridges."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lockkeeper_api.broker_network import (
    MEMBERS_MAX,
    BridgeCounts,
    BrokerNetworkStatus,
    MemberStatus,
    RefusedMember,
)
from lockkeeper_api.status import Condition
from lockkeeper_operator.kubernetes.conditions import dated
from lockkeeper_operator.networks.plan import Refusal
from lockkeeper_operator.networks.status import ready, reconciling, stalled
from lockkeeper_operator.networks.status.facts import Bridge, NetworkFacts
from lockkeeper_operator.networks.status.standing import Standing, standing_of

CONDITIONS = (ready.condition, reconciling.condition, stalled.condition)


def network_status(
    facts: NetworkFacts, previous: Mapping[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status to be written, None if *previous* says the same already."""
    membership, bridges = facts.membership, list(facts.bridges())
    status = BrokerNetworkStatus(
        observed_generation=generation,
        conditions=_dated(standing_of(facts), previous, generation, now),
        brokers=len(membership.members),
        bridges=_counts(bridges),
        members=list(_members(facts, bridges)),
        refused=[_refused(each) for each in membership.refusals[:MEMBERS_MAX]],
    )
    found: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return None if found == previous else found


def invalid_status(
    problems: str, previous: Mapping[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status of a network whose spec is none, None if it is written already."""
    conditions = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True)
        for each in _dated(Standing("Stalled", "InvalidSpec", problems), previous, generation, now)
    ]
    found = {**previous, "observedGeneration": generation, "conditions": conditions}
    return None if found == previous else found


def _members(facts: NetworkFacts, bridges: Sequence[Bridge]) -> Iterator[MemberStatus]:
    for member in sorted(facts.membership.members, key=lambda each: each.key):
        reports = facts.reports(member.key)
        # A message can wait for several bridges: the sum of them would count it often.
        yield MemberStatus(
            namespace=member.namespace,
            name=member.name,
            bridges=_counts(each for each in bridges if each.link.dialler.key == member.key),
            waiting=max((each.waiting for each in reports), default=0),
            stranded=max((each.stranded for each in reports), default=0),
        )


def _refused(refusal: Refusal) -> RefusedMember:
    namespace, name = refusal.broker
    return RefusedMember(
        namespace=namespace, name=name, reason=refusal.reason, message=refusal.message
    )


def _counts(bridges: Iterable[Bridge]) -> BridgeCounts:
    states = [each.connected for each in bridges]
    return BridgeCounts(expected=len(states), connected=sum(states))


def _dated(
    standing: Standing, previous: Mapping[str, Any], generation: int, now: str
) -> list[Condition]:
    verdicts = [condition(standing) for condition in CONDITIONS]
    return dated(verdicts, dict(previous), generation, now)
