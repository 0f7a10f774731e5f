"""Observes one Destination: its Broker, what that has of it, who else stands for the same."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import get_args

from lockkeeper_api import DestinationSpec
from lockkeeper_api.cluster.operation import AllowedDestinations
from lockkeeper_api.destination import PURGE_ANNOTATION
from lockkeeper_api.units import format_duration
from lockkeeper_operator.brokers.allowing import is_allowed
from lockkeeper_operator.brokers.desired.network_part import FilterOf
from lockkeeper_operator.destinations.applying import Place
from lockkeeper_operator.destinations.desired.declaration import Declaration, declaration
from lockkeeper_operator.destinations.observed import BrokerState, DestinationState
from lockkeeper_operator.destinations.plan import FINALIZER
from lockkeeper_operator.destinations.status.accepted import TYPE as ACCEPTED
from lockkeeper_operator.destinations.status.facts import (
    DestinationFacts,
    Figures,
    GroupFigures,
    StreamFigures,
)
from lockkeeper_operator.kubernetes.caches.caches import TARGET_GROUP, Target, target_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.verdict import YES
from lockkeeper_operator.polling.admin_endpoint import BrokerRefusedError, BrokerSilentError
from lockkeeper_operator.polling.poll_state import PollState
from lockkeeper_operator.polling.views import (
    DestinationView,
    StreamView,
    policy_hash,
    view_of,
)
from lockkeeper_operator.tools import Tools

LOST_SECONDS = 20.0
"""Silence of a broker after which a resource that is being deleted waits no more."""
KINDS = get_args(DestinationSpec.model_fields["kind"].annotation)


@dataclass(frozen=True, slots=True)
class Look:
    """All that is known of a Destination at a time: for its plan, its status and its steps.

    *place* is None where no broker answers; *wanted* is what the broker is to be told.
    """

    state: DestinationState
    facts: DestinationFacts
    place: Place | None
    wanted: Declaration


class Observer:
    """Reads what there is of Destinations: in caches, and where those do not tell, at brokers."""

    def __init__(self, tools: Tools, filter_of: FilterOf) -> None:
        self._tools, self._filter_of = tools, filter_of
        self._begun = asyncio.get_running_loop().time()

    def is_known(self, target: Target) -> bool:
        """Return whether it is known what becomes of the Broker: gone, or asked once at least.

        An operator that has just begun must not write that it does not know anything yet.
        """
        state = self._state(target)
        return self._broker(target) is None or (state is not None and state.heard)

    async def look(self, resource: Manifest, spec: DestinationSpec) -> Look:
        """Return what is known of a Destination now. Raises ApiError."""
        metadata, target = resource["metadata"], target_of(resource)
        deleting = "deletionTimestamp" in metadata
        finalizer = FINALIZER in metadata.get("finalizers", ())
        broker, polled = self._broker(target), self._state(target)
        if target.kind not in KINDS:
            broker = None  # No broker has such a thing.
        facts = DestinationFacts(
            name=target.name,
            broker=f"{target.namespace}/{target.broker}",
            broker_there=broker is not None,
            allowed=broker is not None and await self._is_allowed(broker, target, metadata),
            broker_answers=polled is not None and polled.master is not None,
            holder="" if broker is None else await self._holder(resource, target, broker),
        )
        acceptable = facts.broker_there and facts.allowed and not facts.holder
        view = None
        if polled is not None and acceptable and (not deleting or finalizer):
            view = await self._view(polled, target, fresh=deleting)
        bridge_filter = await self._filter_of(target.namespace, target.broker)
        wanted = declaration(resource, spec, bridge_filter)
        own = wanted.owner
        facts = replace(
            facts,
            foreign=self._is_foreign(resource, spec, view, own),
            figures=None if view is None else _figures(view),
            in_sync=view is not None
            and view.owner == own
            and view.policy == policy_hash(wanted.policy),
        )
        state = DestinationState(
            name=target.name,
            policy=spec.deletion_policy,
            deleting=deleting,
            finalizer=finalizer,
            accepted=acceptable and not facts.foreign,
            broker=self._broker_state(broker, polled, metadata),
            exists=view is not None,
            empty=view is not None and view.empty,
            in_sync=facts.in_sync,
            purge=metadata.get("annotations", {}).get(PURGE_ANNOTATION),
        )
        return Look(state, facts, self._place(target), wanted)

    def _place(self, target: Target) -> Place | None:
        """Return where its broker answers, None where it does not."""
        state = self._state(target)
        if state is None or state.master is None:
            return None
        return Place(state, state.master, target)

    def _state(self, target: Target) -> PollState | None:
        return self._tools.poll_states.get((target.namespace, target.broker))

    def _broker(self, target: Target) -> Manifest | None:
        """Return the Broker, None where it is gone or about to go."""
        found = self._tools.caches.brokers.get(target.namespace, target.broker)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        return found

    async def _is_allowed(self, broker: Manifest, target: Target, metadata: Manifest) -> bool:
        """Return whether the Broker lets the Destination's namespace in."""
        said, namespace = (
            broker.get("spec", {}).get("allowedDestinations", {}),
            metadata["namespace"],
        )
        try:
            allowed = AllowedDestinations.model_validate(said)
            labels: Mapping[str, str] = {}
            if allowed.namespaces == "Selected" and namespace != target.namespace:
                labels = await self._tools.namespaces.readable_labels(namespace)
            return is_allowed(allowed, target.namespace, namespace, labels)
        except (ValueError, KeyError):
            return False

    async def _holder(self, resource: Manifest, target: Target, broker: Manifest) -> str:
        """Return the older Destination that stands for the same, empty if there is none.

        One that the Broker does not let in keeps nobody out.
        """
        metadata = resource["metadata"]
        group = (TARGET_GROUP, target.namespace, target.broker, target.kind, target.name)
        names = self._tools.caches.destinations.names_in(*group)
        own = (metadata["creationTimestamp"], metadata["namespace"], metadata["name"])
        for name in names:
            other = None
            if name != own[1:]:
                other = self._tools.caches.destinations.get(*name)
            if other is None or (other["metadata"]["creationTimestamp"], *name) >= own:
                continue
            if await self._is_allowed(broker, target, other["metadata"]):
                return "/".join(name)
        return ""

    async def _view(self, state: PollState, target: Target, fresh: bool) -> DestinationView | None:
        """Return what the broker has; what nobody owns is not in its list, so it is asked."""
        key = (target.kind, target.name)
        if state.master is None or (key in state.owned and not fresh):
            return state.owned.get(key)
        try:
            said = await self._tools.admin.destination(state.master, *key)
        except (BrokerSilentError, BrokerRefusedError):
            state.master, state.silent_since = None, asyncio.get_running_loop().time()
            self._tools.ask((target.namespace, target.broker))
            return None
        return None if said is None else view_of(said)

    def _is_foreign(
        self, resource: Manifest, spec: DestinationSpec, view: DestinationView | None, own: str
    ) -> bool:
        """Return whether it was there before and may not be adopted."""
        if spec.adoption == "Allowed" or view is None or view.owner == own:
            return False
        conditions = resource.get("status", {}).get("conditions", ())
        return not any(each["type"] == ACCEPTED and each["status"] == YES for each in conditions)

    def _broker_state(
        self, broker: Manifest | None, state: PollState | None, metadata: Manifest
    ) -> BrokerState:
        if broker is None:
            return BrokerState.GONE
        if state is not None and state.master is not None:
            return BrokerState.ANSWERS
        deleted = metadata.get("deletionTimestamp")
        if deleted is None:
            return BrokerState.SILENT
        # One that was never asked, as its own spec is no good, is as silent as can be: since this
        # process knows of it.
        since = self._begun if state is None else state.silent_since
        silent = asyncio.get_running_loop().time() - since
        waited = min(silent, self._tools.clock.seconds_since(deleted))
        return BrokerState.LOST if waited >= LOST_SECONDS else BrokerState.SILENT


def _figures(view: DestinationView) -> Figures:
    counted = view.depth, view.consumers, view.enqueued, view.dequeued
    stream = None if view.stream is None else _stream_figures(view.stream)
    return Figures(*counted, _age(view.age), stream)


def _stream_figures(view: StreamView) -> StreamFigures:
    groups = tuple(
        GroupFigures(each.name, each.members, each.lag_messages, _age(each.lag_age))
        for each in view.groups
    )
    return StreamFigures(view.partitions, view.size, groups)


def _age(seconds: int | None) -> str | None:
    return None if seconds is None else format_duration(timedelta(seconds=seconds))
