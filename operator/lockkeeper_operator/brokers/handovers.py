"""Time limit for a hand-over: clients are served by nobody meanwhile.

A standby that is proven able may fail all the same, when it reads the journal. The old master then
serves again, and is left alone for a while: it would be fenced again and again otherwise.
"""

from dataclasses import dataclass

from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.names import MASTER
from lockkeeper_operator.polling.poll_state import BrokerKey

TAKE_OVER_SECONDS_MAX = 20.0
"""Longer than a Lease lasts that nobody gave back; who reads the journal has taken over by then."""
AGAIN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class _Begun:
    """A hand-over: by which pod, and when it began."""

    master: str
    at: float


class Handovers:
    """Remembers the hand-over of each Broker that goes on, or was given up."""

    def __init__(self) -> None:
        self._begun: dict[BrokerKey, _Begun] = {}

    def gave_up(self, key: BrokerKey, observed: Observed, now: float) -> bool:
        """Return whether a hand-over must not go on, or begin; *now* is in seconds.

        Is asked only while there is one to carry out.
        """
        master = next((pod.uid for pod in observed.pods if pod.role == MASTER), "")
        begun = self._begun.get(key)
        another = begun is not None and master not in ("", begun.master)
        if begun is None or another or now - begun.at >= AGAIN_SECONDS:
            self._begun[key] = _Begun(master, now)
            return False
        return now - begun.at >= TAKE_OVER_SECONDS_MAX

    def rest(self, key: BrokerKey, observed: Observed) -> None:
        """Forget a hand-over that is over; is called while there is none to carry out.

        Another has taken over, or the pod need not leave its node any more. That nobody is proven
        able for a moment is no end: who fails at the journal would be let try again and again.
        """
        begun = self._begun.get(key)
        if begun is None:
            return
        took_over = any(pod.role == MASTER and pod.uid != begun.master for pod in observed.pods)
        pods = [pod for pod in observed.pods if pod.uid == begun.master]
        if took_over or not any(observed.must_leave(pod) for pod in pods):
            del self._begun[key]

    def forget(self, key: BrokerKey) -> None:
        """Forget a Broker that is gone."""
        self._begun.pop(key, None)
