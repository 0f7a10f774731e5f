"""Facts from which the conditions of a Broker follow."""

from dataclasses import dataclass

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed, Pod
from lockkeeper_operator.brokers.steps import Step
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import MASTER


@dataclass(frozen=True, slots=True)
class Facts:
    """A Broker: what there is, what it is to be, and the plan between the two."""

    observed: Observed
    desired: Desired
    steps: tuple[Step, ...] = ()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that are to be there, as far as they are."""
        return tuple(pod for pod in self.observed.pods if pod.name in self.desired.pods)

    @property
    def masters(self) -> tuple[Pod, ...]:
        """The pods that say they are the master, of whatever number."""
        return tuple(pod for pod in self.observed.pods if pod.role == MASTER and pod.ready)

    @property
    def master(self) -> Pod | None:
        """The master, if exactly one pod says so."""
        return self.masters[0] if len(self.masters) == 1 else None

    @property
    def claim(self) -> Manifest | None:
        """The claim with the journal."""
        return self.observed.children.get(("PersistentVolumeClaim", self.desired.claim))
