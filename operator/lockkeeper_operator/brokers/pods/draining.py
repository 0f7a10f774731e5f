"""A node that is being emptied: its master hands over first, to a standby on another node.

Pods there are fenced until one elsewhere is the master, so that none of them is the next. They
stay, and stand by again: who cordons a node may think better of it, and who drains it finds no
master there.
"""

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed, Pod
from lockkeeper_operator.brokers.pods.scale_in import HANDING_OVER
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.names import FENCED, MASTER

MASTER_STAYS = "MasterStays"


def fenced_for_drain(observed: Observed, desired: Desired) -> frozenset[str]:
    """Return which pods are kept from serving and taking over, as long as one hands over."""
    going, staying = _parted(observed, desired)
    if observed.gave_up or any(pod.leads for pod in staying):
        return frozenset()
    if any(pod.role == MASTER for pod in going):
        proven = any(pod.takes_over for pod in staying)
        return frozenset(pod.name for pod in going) if proven else frozenset()
    # Nobody leads for a moment. Once the lock is free, nobody is refused it: proof is no more.
    able = any(pod.ready and pod.report is not None for pod in staying)
    return frozenset(pod.name for pod in going if able and pod.role == FENCED)


def handover_for_drain(observed: Observed, desired: Desired) -> Wait | None:
    """Return what is waited for before anything else is done about pods, None for nothing."""
    names = ", ".join(sorted(fenced_for_drain(observed, desired) - desired.fenced))
    if not names:
        return None
    return Wait(HANDING_OVER, f"a standby on another node takes over; fenced until then: {names}")


def master_stays(observed: Observed, desired: Desired) -> Wait | None:
    """Return why a master that should leave its node stays there, None where there is none.

    A Broker of one replica has nobody to hand over to, whatever it waits for.
    """
    going, _ = _parted(observed, desired)
    # By its label alone nobody is known to be the master: who was not asked yet is not blamed.
    masters = [pod.name for pod in going if pod.role == MASTER and pod.report is not None]
    if not masters or len(desired.pods) == 1:
        return None
    why = (
        "no standby took over in time, or for long; the operator tries again later"
        if observed.gave_up
        else "no standby on another node is proven able to take over"
    )
    return Wait(MASTER_STAYS, f"{', '.join(masters)} must leave its node and stays: {why}")


def _parted(observed: Observed, desired: Desired) -> tuple[list[Pod], list[Pod]]:
    """Return the pods that are to leave their nodes, and those that stay and may take over."""
    own = [pod for pod in observed.pods if pod.name in desired.pods and not pod.terminating]
    going = [pod for pod in own if observed.must_leave(pod)]
    staying = [pod for pod in own if pod not in going and pod.name not in desired.fenced]
    return going, staying
