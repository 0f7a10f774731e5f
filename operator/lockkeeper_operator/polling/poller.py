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
REST_SECONDS_MIN, REST_SECONDS_MAX = 9.0, 30.0
"""Between two questions to a Broker that is settled and to whose destinations nothing happens."""
SETTLED_PER_SECOND = 25
"""How many settled Brokers are asked a second at most, as long as the longest pause allows that."""
UNSETTLED_SECONDS = 1.0
IMPATIENCE = 1.3
"""By how much longer the next question waits when there was no news: a cluster in which nothing
gets on must not be kept busy by questions."""
MISSES_MAX = 2
"""How many times in a row a broker may not answer before what it said last counts no more."""


def rest_seconds(brokers: int) -> float:
    """Return how long a settled Broker is left alone where there are so many."""
    return min(max(REST_SECONDS_MIN, brokers / SETTLED_PER_SECOND), REST_SECONDS_MAX)


@dataclass(frozen=True, slots=True)
class News:
    """What has changed: something about the Broker's pods, whether its master answers, and
    which destinations.
    """

    pods: bool = False
    master: bool = False
    destinations: frozenset[DestinationKey] = frozenset()


@dataclass(frozen=True, slots=True)
class _Heard:
    """Whether a master answered with its list; which pod told its report with it, by uid, empty for
    none, and whether that is another; which destinations differ.
    """

    answered: bool = False
    told: str = ""
    report: bool = False
    destinations: frozenset[DestinationKey] = frozenset()


class Poller:
    """Asks the brokers of one Broker at a time."""

    def __init__(self, admin: AdminEndpoints) -> None:
        self._admin = admin

    async def ask(
        self, state: PollState, with_destinations: bool, rest: float = REST_SECONDS_MIN
    ) -> News:
        """Ask the master for its destinations, and all pods what they are, if it is time.

        *rest* is how many seconds it is left alone while nothing happens.

        A master says what it is beside its list, so that it need not be asked twice.
        """
        loop = asyncio.get_running_loop()
        begun, pods, before = loop.time(), state.pods, state.master
        interval = state.patience if state.unsettled else rest
        is_time = state.stale or begun - state.asked_at >= interval * 0.9
        leader = _leader(state, pods) if with_destinations else None
        heard = await self._list(state, leader, rest)
        pods_changed, destinations = heard.report, heard.destinations
        if is_time:
            stale, state.stale, state.asked_at = state.stale, False, begun
            silent = [pod for pod in pods if pod.uid != heard.told]
            said = await asyncio.gather(*(self._status(state, pod) for pod in silent))
            gone = state.reports.keys() - {pod.uid for pod in pods}
            for uid in gone:
                state.misses.pop(uid, None)
                _forget(state, uid)
            pods_changed = pods_changed or stale or any(said) or bool(gone)
            found = _leader(state, pods) if with_destinations else None
            if found != leader:
                heard = await self._list(state, found, rest)
                pods_changed = pods_changed or heard.report
                destinations |= heard.destinations
        if (state.master is None) != (before is None):
            state.silent_since = begun
        # A master that begins, or begins again, to answer is news; so is one that ceases.
        master = before is None if heard.answered else (state.master is None) != (before is None)
        if pods_changed or master:
            state.patience = UNSETTLED_SECONDS
        else:
            longer = max(state.patience, UNSETTLED_SECONDS) * IMPATIENCE
            state.patience = min(longer, DESTINATIONS_SECONDS)
        return News(pods_changed, master, destinations)

    async def _status(self, state: PollState, pod: AskedPod) -> bool:
        """Return whether a pod says something else than before."""
        try:
            said = await self._admin.status(state.address(pod))
        except (BrokerSilentError, BrokerRefusedError):
            state.misses[pod.uid] = misses = state.misses.get(pod.uid, 0) + 1
            if pod.uid not in state.reports or misses < MISSES_MAX:
                return False
            _forget(state, pod.uid)
            return True
        return _reported(state, pod, said)

    async def _list(self, state: PollState, leader: AskedPod | None, rest: float) -> _Heard:
        """Ask the master for its destinations, if it is time."""
        if leader is None:
            state.master = None
            return _Heard()
        begun, address = asyncio.get_running_loop().time(), state.address(leader)
        if state.master == address and begun - state.listed_at < state.listing_patience * 0.9:
            return _Heard()
        is_known = not state.touched and state.listed_with in ("", leader.uid)
        state.listed_at, was_touched = begun, bool(state.touched)
        try:
            said = await self._admin.destinations(address, state.listed if is_known else b"")
        except (BrokerSilentError, BrokerRefusedError):
            state.master = None
            return _Heard()
        state.master = address
        if said.views is None:
            changed, report, told = frozenset[DestinationKey](), False, state.listed_with
            state.misses.pop(told, None)
        else:
            changed = _taken(state, said.views, begun)
            report = said.broker is not None and _reported(state, leader, said.broker)
            state.listed_with = told = "" if said.broker is None else leader.uid
            state.listed = said.digest
        longer = max(state.listing_patience, DESTINATIONS_SECONDS) * IMPATIENCE
        is_still = not (changed or was_touched)
        state.listing_patience = min(longer, rest) if is_still else DESTINATIONS_SECONDS
        return _Heard(True, told, report, changed)


def _reported(state: PollState, pod: AskedPod, said: dict[str, Any]) -> bool:
    """Take down what a pod says of itself; returns whether that is something else than before."""
    before, report = state.reports.get(pod.uid), report_of(said)
    state.misses.pop(pod.uid, None)
    state.reports[pod.uid] = report
    if report == before:
        return False
    _read_again(state, pod.uid)
    return True


def _forget(state: PollState, uid: str) -> None:
    """Forget what a pod said of itself."""
    del state.reports[uid]
    _read_again(state, uid)


def _read_again(state: PollState, uid: str) -> None:
    """Read the next list of a pod whatever it was: what the pod says of itself is beside it."""
    if uid == state.listed_with:
        state.listed = b""


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
