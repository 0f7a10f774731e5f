"""Asks brokers again and again, and tells what has changed."""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

from lockkeeper_operator.names import MASTER
from lockkeeper_operator.polling.admin_endpoint import (
    AdminEndpoints,
    BrokerRefusedError,
    BrokerSilentError,
)
from lockkeeper_operator.polling.poll_state import (
    AskedPod,
    DestinationKey,
    PollState,
    changed_views,
)
from lockkeeper_operator.polling.views import report_of, view_of

DESTINATIONS_SECONDS = 3.0
STATUS_SECONDS = 9.0
"""Of settled Brokers; as long as nothing happens to their destinations, these wait as long, too."""
UNSETTLED_SECONDS = 1.0
IMPATIENCE = 1.3
"""By how much longer the next question waits when there was no news: a cluster in which nothing
gets on must not be kept busy by questions."""
MISSES_MAX = 2
"""How many times in a row a broker may not answer before what it said last counts no more."""


@dataclass(frozen=True, slots=True)
class News:
    """What has changed: something about the Broker's pods, whether its master answers, and
    which destinations.
    """

    pods: bool = False
    master: bool = False
    destinations: frozenset[DestinationKey] = frozenset()


class Poller:
    """Asks the brokers of one Broker at a time."""

    def __init__(self, admin: AdminEndpoints) -> None:
        self._admin = admin

    async def ask(self, state: PollState, with_destinations: bool) -> News:
        """Ask all pods what they are, if it is time, and the master for its destinations."""
        now, pods = asyncio.get_running_loop().time(), state.pods
        interval = state.patience if state.unsettled else STATUS_SECONDS
        changed = False
        if state.stale or now - state.asked_at >= interval * 0.9:
            stale, state.stale, state.asked_at = state.stale, False, now
            said = await asyncio.gather(*(self._status(state, pod) for pod in pods))
            gone = state.reports.keys() - {pod.uid for pod in pods}
            for uid in gone:
                del state.reports[uid]
                state.misses.pop(uid, None)
            changed = stale or any(said) or bool(gone)
        master, destinations = await self._list(state, pods, with_destinations)
        if changed or master:
            state.patience = UNSETTLED_SECONDS
        else:
            longer = max(state.patience, UNSETTLED_SECONDS) * IMPATIENCE
            state.patience = min(longer, DESTINATIONS_SECONDS)
        return News(changed, master, destinations)

    async def _status(self, state: PollState, pod: AskedPod) -> bool:
        """Return whether a pod says something else than before."""
        before = state.reports.get(pod.uid)
        try:
            said = await self._admin.status(state.address(pod))
        except (BrokerSilentError, BrokerRefusedError):
            state.misses[pod.uid] = misses = state.misses.get(pod.uid, 0) + 1
            if before is None or misses < MISSES_MAX:
                return False
            del state.reports[pod.uid]
            return True
        state.misses.pop(pod.uid, None)
        state.reports[pod.uid] = report_of(said)
        return state.reports[pod.uid] != before

    async def _list(
        self, state: PollState, pods: tuple[AskedPod, ...], wanted: bool
    ) -> tuple[bool, frozenset[DestinationKey]]:
        """Return whether the master began or ceased to answer, and what differs there."""
        loop = asyncio.get_running_loop()
        before, begun = state.master, loop.time()
        leader = _leader(state, pods)
        changed: frozenset[DestinationKey] | None = None
        if leader is not None and wanted:
            address = state.address(leader)
            if state.master == address and begun - state.listed_at < state.listing_patience * 0.9:
                return False, frozenset()
            state.listed_at, was_touched = begun, bool(state.touched)
            try:
                said = await self._admin.destinations(
                    address, b"" if state.touched else state.listed
                )
            except (BrokerSilentError, BrokerRefusedError):
                state.master = None
            else:
                state.master, state.listed = address, said.digest
                changed = frozenset() if said.views is None else _taken(state, said.views, begun)
                longer = max(state.listing_patience, DESTINATIONS_SECONDS) * IMPATIENCE
                is_still = not (changed or was_touched)
                state.listing_patience = (
                    min(longer, STATUS_SECONDS) if is_still else DESTINATIONS_SECONDS
                )
        else:
            state.master = None
        if (state.master is None) != (before is None):
            state.silent_since = begun
        if changed is None:
            return (state.master is None) != (before is None), frozenset()
        return before is None, changed


def _leader(state: PollState, pods: tuple[AskedPod, ...]) -> AskedPod | None:
    """Return the master's pod: the labelled one, or one that serves on, its label taken away."""
    labelled = (pod for pod in pods if pod.leads)
    reports = ((pod, state.reports.get(pod.uid)) for pod in pods)
    serving = (pod for pod, said in reports if said is not None and said.role == MASTER)
    return next(labelled, None) or next(serving, None)


def _taken(
    state: PollState, said: list[dict[str, Any]], asked_at: float
) -> frozenset[DestinationKey]:
    """Take a list down that was asked for at that time; returns what is new in it."""
    found = {(sys.intern(str(each["kind"])), str(each["name"])): view_of(each) for each in said}
    recent = {key: at for key, at in state.touched.items() if at >= asked_at}
    for key in recent:
        # Asked before it was changed: what is known is newer.
        found.pop(key, None)
        if key in state.owned:
            found[key] = state.owned[key]
    changed = changed_views(state.owned, found)
    state.owned, state.touched = found, recent
    return frozenset(changed)
