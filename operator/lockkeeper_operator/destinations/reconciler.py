"""Looks at one Destination: observes, plans, carries out, tells."""

from typing import get_args

from pydantic import ValidationError

from lockkeeper_api import DestinationSpec
from lockkeeper_api.complaints import complaint
from lockkeeper_operator.brokers.desired.network_part import FilterOf
from lockkeeper_operator.destinations.applying import DestinationSteps
from lockkeeper_operator.destinations.desired.declaration import declaration
from lockkeeper_operator.destinations.observed import DeletionPolicy
from lockkeeper_operator.destinations.observing import LOST_SECONDS, Look, Observer
from lockkeeper_operator.destinations.plan import (
    FINALIZER,
    Action,
    DestinationStep,
    destination_plan,
)
from lockkeeper_operator.destinations.status.facts import DestinationFacts
from lockkeeper_operator.destinations.telling import Teller
from lockkeeper_operator.kubernetes.caches.caches import target_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.polling.admin_endpoint import BrokerRefusedError, BrokerSilentError
from lockkeeper_operator.polling.views import policy_hash
from lockkeeper_operator.tools import Tools

WAITING_SECONDS = 2.0
UNKNOWN_SECONDS = 60.0
"""Whoever hears of a Broker first has its Destinations looked at; this is for safety only."""
ROUNDS_MAX = 3


class DestinationReconciler:
    """Brings Destinations to what they are to be."""

    def __init__(self, tools: Tools, filter_of: FilterOf) -> None:
        """*filter_of* tells what a Broker's networks say of queues."""
        self._tools = tools
        self._observer = Observer(tools, filter_of)
        self._steps = DestinationSteps(tools)
        self._teller = Teller(tools)
        self._agreed: dict[tuple[str, str], str] = {}
        """What each Destination's broker was told when it was last in sync, as hashes."""

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Look at a Destination; returns the seconds after which to look again at the latest.

        Raises ApiError, BrokerSilentError and BrokerRefusedError for what may work later.
        """
        resource = self._tools.caches.destinations.get(namespace, name)
        if resource is None:
            self._teller.forget(namespace, name)
            self._agreed.pop((namespace, name), None)
            return None
        if "deletionTimestamp" in resource["metadata"]:
            return await self._end(resource)
        if not self._observer.is_known(target_of(resource)):
            return UNKNOWN_SECONDS
        try:
            spec = DestinationSpec.model_validate(resource["spec"])
        except ValidationError as error:
            return await self._teller.tell(resource, _invalid(resource, error))
        look = await self._bring(resource, spec)
        return await self._teller.tell(resource, look.facts)

    async def _bring(self, resource: Manifest, spec: DestinationSpec) -> Look:
        """Do what is to be done, and return what there was at the last look."""
        key = (resource["metadata"]["namespace"], resource["metadata"]["name"])
        for _ in range(ROUNDS_MAX):
            look = await self._observer.look(resource, spec)
            told = policy_hash(look.wanted.policy)
            # A Broker's networks have a word in it: that changes without anybody's drift.
            is_news = self._agreed.get(key, told) != told
            if look.facts.in_sync:
                self._agreed[key] = told
            steps = destination_plan(look.state)
            if not await self._steps.carry_out(steps, resource, look.wanted, look.place, is_news):
                break
        return look

    async def _end(self, resource: Manifest) -> float | None:
        """Look at a Destination that is being deleted: at nothing but what its finalizer is for.

        Whether its spec is valid, and its Broker was ever asked, is of no importance then.
        """
        if FINALIZER not in resource["metadata"].get("finalizers", ()):
            return None
        spec = _last_words(resource)
        try:
            await self._bring(resource, spec)
        except (BrokerRefusedError, BrokerSilentError):
            deleted = resource["metadata"]["deletionTimestamp"]
            if self._tools.clock.seconds_since(deleted) < LOST_SECONDS:
                raise
            released = (DestinationStep(Action.REMOVE_FINALIZER, "BrokerUnreachable"),)
            await self._steps.carry_out(released, resource, declaration(resource, spec), None)
        return WAITING_SECONDS


def _last_words(resource: Manifest) -> DestinationSpec:
    """Return as much of a spec as its end depends on; what is no policy touches nothing."""
    said = resource.get("spec", {})
    policy, adoption = said.get("deletionPolicy"), said.get("adoption")
    return DestinationSpec.model_construct(
        deletion_policy=policy if policy in get_args(DeletionPolicy) else "Retain",
        adoption="Refused" if adoption == "Refused" else "Allowed",
    )


def _invalid(resource: Manifest, error: ValidationError) -> DestinationFacts:
    found = (complaint(DestinationSpec, each) for each in error.errors())
    target = target_of(resource)
    return DestinationFacts(
        name=target.name,
        broker=f"{target.namespace}/{target.broker}",
        invalid="; ".join(f"spec.{path}: {reason}" for path, reason in found),
    )
