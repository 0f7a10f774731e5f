"""Time limit for a hand-over: clients are served by nobody meanwhile.

A standby that is proven able may fail all the same, when it reads the journal or soon after. The
old master then serves again, and is left alone for a while: it would be fenced again and again
otherwise.
"""

from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.names import MASTER
from lockkeeper_operator.polling.poll_state import BrokerKey

TAKE_OVER_SECONDS_MAX = 20.0
"""Longer than a Lease lasts that nobody gave back; who reads the journal has taken over by then."""
AGAIN_SECONDS = 300.0


class Handovers:
    """Remembers which pods of each Broker have handed over of late, or were to."""

    def __init__(self) -> None:
        self._begun: dict[BrokerKey, dict[str, float]] = {}
        """When the hand-over of each pod began, by its uid."""

    def gave_up(self, key: BrokerKey, observed: Observed, now: float) -> bool:
        """Return whether a hand-over must not go on, or begin; *now* is in seconds.

        Is asked only while there is one to carry out.
        """
        begun = self._begun.setdefault(key, {})
        latest = max(begun, key=begun.__getitem__, default="")
        # Nobody leads for a moment: the last one who did is handing over.
        master = next((pod.uid for pod in observed.pods if pod.role == MASTER), latest)
        if master not in begun or now - begun[master] >= AGAIN_SECONDS:
            begun[master] = now
        return now - begun[master] >= TAKE_OVER_SECONDS_MAX

    def rest(self, key: BrokerKey, observed: Observed) -> None:
        """Forget pods that need not leave their nodes any more: their next cordon is another one.

        Is called while there is no hand-over to carry out. That another leads is no end yet: who
        takes over, and fails soon after, would be let try again and again.
        """
        begun = self._begun.pop(key, {})
        leaving = {pod.uid for pod in observed.pods if observed.must_leave(pod)}
        kept = {uid: at for uid, at in begun.items() if uid in leaving}
        if kept:
            self._begun[key] = kept

    def forget(self, key: BrokerKey) -> None:
        """Forget a Broker that is gone."""
        self._begun.pop(key, None)
