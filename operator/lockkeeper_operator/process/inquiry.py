"""Asks the pods of Brokers what they are, and wakes whom that concerns."""

from lockkeeper_operator.kubernetes.caches.caches import BROKER_GROUP, TARGET_GROUP, Caches
from lockkeeper_operator.polling.poll_state import AskedPod, asked_pod
from lockkeeper_operator.polling.poller import DESTINATIONS_SECONDS, Poller, rest_seconds
from lockkeeper_operator.process.waking import Wakes


class Inquiry:
    """One for all Brokers."""

    def __init__(self, poller: Poller, caches: Caches, wakes: Wakes) -> None:
        self._poller, self._caches, self._wakes = poller, caches, wakes

    async def ask(self, namespace: str, name: str) -> float | None:
        """Ask the pods of a Broker; returns when to do it again."""
        key = (namespace, name)
        state = self._wakes.poll_states.get(key)
        if state is None or not state.port:
            return None
        has_any = bool(self._caches.destinations.names_in(BROKER_GROUP, namespace, name))
        if state.stale:
            state.pods = self._pods(namespace, name)
        rest = rest_seconds(len(self._wakes.poll_states))
        news = await self._poller.ask(state, has_any, rest)
        first, state.heard = not state.heard, True
        if news.pods or first:
            self._wakes.brokers.add(key)
            self._wakes.all_networks(self._caches)
        if news.master or first:
            self._wakes.destinations_of(self._caches, key)
        for kind, destination in news.destinations:
            group = (TARGET_GROUP, namespace, name, kind, destination)
            for each in self._caches.destinations.names_in(*group):
                self._wakes.destinations.add(each)
        if state.unsettled:
            return state.patience
        return max(DESTINATIONS_SECONDS, state.listing_patience) if has_any else rest

    def _pods(self, namespace: str, name: str) -> tuple[AskedPod, ...]:
        found = self._caches.pods.group(BROKER_GROUP, namespace, name)
        return tuple(pod for pod in map(asked_pod, found) if pod is not None)
