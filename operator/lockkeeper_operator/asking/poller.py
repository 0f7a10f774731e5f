"""Asks brokers again and again, and tells what has changed."""

import asyncio
from dataclasses import dataclass
from typing import Any

from lockkeeper_operator.asking.admin_endpoint import (
    AdminEndpoints,
    BrokerRefusedError,
    BrokerSilentError,
)
from lockkeeper_operator.asking.desk import AskedPod, Desk, DestinationKey, changed_views
from lockkeeper_operator.asking.views import report_of, view_of

DESTINATIONS_SECONDS = 3.0
STATUS_SECONDS = 9.0
UNSETTLED_SECONDS = 1.0
IMPATIENCE = 1.3
"""By how much longer the next question waits when there was no news, up to that for settled ones'
destinations: a cluster in which nothing gets on must not be kept busy by questions."""
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

    async def ask(self, desk: Desk, with_destinations: bool) -> News:
        """Ask all pods what they are, if it is time, and the master for its destinations."""
        now, pods = asyncio.get_running_loop().time(), desk.pods
        interval = desk.patience if desk.unsettled else STATUS_SECONDS
        changed = False
        if desk.stale or now - desk.asked_at >= interval * 0.9:
            stale, desk.stale, desk.asked_at = desk.stale, False, now
            said = await asyncio.gather(*(self._status(desk, pod) for pod in pods))
            gone = desk.reports.keys() - {pod.uid for pod in pods}
            for uid in gone:
                del desk.reports[uid]
                desk.misses.pop(uid, None)
            changed = stale or any(said) or bool(gone)
        master, destinations = await self._list(desk, pods, with_destinations)
        if changed or master:
            desk.patience = UNSETTLED_SECONDS
        else:
            longer = max(desk.patience, UNSETTLED_SECONDS) * IMPATIENCE
            desk.patience = min(longer, DESTINATIONS_SECONDS)
        return News(changed, master, destinations)

    async def _status(self, desk: Desk, pod: AskedPod) -> bool:
        """Return whether a pod says something else than before."""
        before = desk.reports.get(pod.uid)
        try:
            said = await self._admin.status(desk.address(pod))
        except (BrokerSilentError, BrokerRefusedError):
            desk.misses[pod.uid] = misses = desk.misses.get(pod.uid, 0) + 1
            if before is None or misses < MISSES_MAX:
                return False
            del desk.reports[pod.uid]
            return True
        desk.misses.pop(pod.uid, None)
        desk.reports[pod.uid] = report_of(said)
        return desk.reports[pod.uid] != before

    async def _list(
        self, desk: Desk, pods: tuple[AskedPod, ...], wanted: bool
    ) -> tuple[bool, frozenset[DestinationKey]]:
        """Return whether the master began or ceased to answer, and what differs there."""
        loop = asyncio.get_running_loop()
        before, begun = desk.master, loop.time()
        leader = next((pod for pod in pods if pod.leads), None)
        changed: frozenset[DestinationKey] | None = None
        if leader is not None and wanted:
            address = desk.address(leader)
            if desk.master == address and begun - desk.listed_at < DESTINATIONS_SECONDS * 0.9:
                return False, frozenset()
            desk.listed_at = begun
            try:
                said = await self._admin.destinations(address, b"" if desk.touched else desk.listed)
            except (BrokerSilentError, BrokerRefusedError):
                desk.master = None
            else:
                desk.master, desk.listed = address, said.digest
                changed = frozenset() if said.views is None else _taken(desk, said.views, begun)
        else:
            desk.master = None
        if (desk.master is None) != (before is None):
            desk.silent_since = begun
        if changed is None:
            return (desk.master is None) != (before is None), frozenset()
        return before is None, changed


def _taken(desk: Desk, said: list[dict[str, Any]], asked_at: float) -> frozenset[DestinationKey]:
    """Take a list down that was asked for at that time; returns what is new in it."""
    found = {(str(each["kind"]), str(each["name"])): view_of(each) for each in said}
    recent = {key: at for key, at in desk.touched.items() if at >= asked_at}
    for key in recent:
        # Asked before it was changed: what is known is newer.
        found.pop(key, None)
        if key in desk.owned:
            found[key] = desk.owned[key]
    changed = changed_views(desk.owned, found)
    desk.owned, desk.touched = found, recent
    return frozenset(changed)
