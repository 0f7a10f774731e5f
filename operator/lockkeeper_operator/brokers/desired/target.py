"""Target of a Broker: its desired children, and the desired shape of its pods."""

from dataclasses import dataclass

from lockkeeper_operator.brokers.desired.children import children
from lockkeeper_operator.brokers.desired.configuration import configuration_hash
from lockkeeper_operator.brokers.desired.revision import revision_of
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import APPROVE_ANNOTATION


@dataclass(frozen=True, slots=True)
class Desired:
    """The goal of a plan.

    *pods* are the names of those that are to be there, *claim* that of the claim with the journal,
    the Broker's own or not; *approved* is the revision that a person
    has let the master of a *supervised* Broker go to, and *fenced* the pods that a person keeps
    from serving.
    """

    name: str
    uid: str
    children: tuple[Manifest, ...] = ()
    pods: tuple[str, ...] = ()
    revision: str = ""
    configuration: str = ""
    claim: str = ""
    paused: bool = False
    hibernated: bool = False
    supervised: bool = False
    approved: str = ""
    fenced: frozenset[str] = frozenset()


def desired_of(subject: Subject) -> Desired:
    """Return the goal for a Broker."""
    spec = subject.spec
    return Desired(
        name=subject.name,
        uid=subject.uid,
        children=tuple(children(subject)),
        pods=() if spec.hibernated else subject.pods,
        revision=revision_of(subject),
        configuration=configuration_hash(subject),
        claim=subject.claim,
        paused=spec.paused,
        hibernated=spec.hibernated,
        supervised=spec.update.strategy == "Supervised",
        approved=subject.annotations.get(APPROVE_ANNOTATION, ""),
        fenced=subject.fenced,
    )
