"""Carries out the steps about a Destination."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from lockkeeper_api.destination import PURGE_ANNOTATION
from lockkeeper_operator.destinations.desired.declaration import Declaration
from lockkeeper_operator.destinations.events import destination_event
from lockkeeper_operator.destinations.plan import FINALIZER, Action, DestinationStep
from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import DESTINATION
from lockkeeper_operator.kubernetes.caches.caches import Target
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.polling.admin_endpoint import Address
from lockkeeper_operator.polling.poll_state import PollState
from lockkeeper_operator.polling.views import view_of
from lockkeeper_operator.tools import Tools

ON_BROKER = (Action.DECLARE, Action.SET_POLICY, Action.REMOVE, Action.REMOVE_IF_EMPTY)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a destination is, or is to be: its Broker's state and its master."""

    state: PollState
    master: Address
    target: Target


class DestinationSteps:
    """Knows how each step is done."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def carry_out(
        self,
        steps: Sequence[DestinationStep],
        resource: Manifest,
        wanted: Declaration,
        place: Place | None,
        is_news: bool = False,
    ) -> bool:
        """Do the *steps* in order; returns whether the broker was changed.

        *wanted* is what the broker is to be told, and *is_news* that it was told something else
        before; *place* is None where no broker answers.

        Raises ApiError, BrokerSilentError and BrokerRefusedError; what follows is then left.
        """
        changed = False
        for step in steps:
            removed = 0
            # A new master knows of no owners yet; that it is told is nothing to be told of.
            known = place is not None and _key(place) in place.state.owned
            quiet = step.action is Action.SET_POLICY and (is_news or not known)
            match step.action:
                case Action.ADD_FINALIZER | Action.REMOVE_FINALIZER:
                    await self._set_finalizer(resource, step.action is Action.ADD_FINALIZER)
                case Action.CLEAR_PURGE:
                    await self._change(resource, {"annotations": {PURGE_ANNOTATION: None}})
                case Action.PURGE if place is not None:
                    removed = await self._tools.admin.purge(place.master, *_key(place))
                    changed = True
                case action if action in ON_BROKER and place is not None:
                    await self._change_broker(step.action, wanted, place)
                    changed = True
                case _:
                    continue
            event = destination_event(step, resource, removed)
            if event is not None and not quiet:
                await self._tools.recorder.tell(resource, event)
        return changed

    async def _change_broker(self, action: Action, wanted: Declaration, place: Place) -> None:
        admin, key = self._tools.admin, _key(place)
        if action in (Action.REMOVE, Action.REMOVE_IF_EMPTY):
            await admin.remove(place.master, *key, if_empty=action is Action.REMOVE_IF_EMPTY)
        else:
            await admin.declare(place.master, *key, wanted.policy, wanted.owner)
        said = await admin.destination(place.master, *key)
        place.state.touched[key] = asyncio.get_running_loop().time()
        if said is None:
            place.state.owned.pop(key, None)
        else:
            place.state.owned[key] = view_of(said)

    async def _set_finalizer(self, resource: Manifest, wanted: bool) -> None:
        present = resource["metadata"].get("finalizers", [])
        others = [each for each in present if each != FINALIZER]
        await self._change(resource, {"finalizers": [*others, FINALIZER] if wanted else others})

    async def _change(self, resource: Manifest, change: Manifest) -> None:
        """Change metadata, if the object still is of the version that was looked at."""
        metadata = resource["metadata"]
        named = {name: metadata[name] for name in ("resourceVersion", "uid")}
        try:
            written = await self._tools.api.merge(
                DESTINATION,
                metadata["namespace"],
                metadata["name"],
                {"metadata": {**named, **change}},
            )
        except ApiError as error:
            if error.status == NOT_FOUND:
                return
            raise
        self._tools.caches.destinations.put(written)


def _key(place: Place) -> tuple[str, str]:
    return place.target.kind, place.target.name
