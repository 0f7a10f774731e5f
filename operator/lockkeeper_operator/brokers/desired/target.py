"""Target of a Broker: its desired children, and the desired shape of its pods."""

from dataclasses import dataclass

from lockkeeper_operator.brokers.desired import bootstrap_job
from lockkeeper_operator.brokers.desired.children import children
from lockkeeper_operator.brokers.desired.configuration import configuration_hash
from lockkeeper_operator.brokers.desired.first_journal import CLAIM_EXISTS
from lockkeeper_operator.brokers.desired.revision import revision_of
from lockkeeper_operator.brokers.desired.routes import missing_kinds
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import APPROVE_ANNOTATION


@dataclass(frozen=True, slots=True)
class Desired:
    """The goal of a plan.

    *pods* are the names of those that are to be there, *claim* that of the claim with the journal,
    the Broker's own or not; *approved* is the revision that a person
    has let the master of a *supervised* Broker go to, and *fenced* the pods that a person keeps
    from serving. *bootstrap* is the Job that fills an empty journal, None for none.
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
    bootstrap: Manifest | None = None
    missing_kinds: tuple[str, ...] = ()
    """Kinds that are asked for and that the cluster does not know."""
    self_signed: tuple[str, ...] = ()
    """Listeners whose issuer the cluster does not know, so that the operator issues."""
    first_journal_problem: Wait | None = None
    """Why that Job cannot be made now."""


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
        bootstrap=bootstrap_job.build(subject),
        missing_kinds=missing_kinds(subject),
        self_signed=_self_signed(subject),
        first_journal_problem=_problem(subject),
    )


def _self_signed(subject: Subject) -> tuple[str, ...]:
    listeners = (each for each in subject.spec.listeners if each.tls and each.tls.issuer_ref)
    return tuple(each.name for each in listeners if each.name in subject.listener_certificates)


def _problem(subject: Subject) -> Wait | None:
    source = subject.first_journal
    if source is not None and source.snapshot and subject.spec.storage.existing_claim:
        why = "storage.existingClaim is there already: a snapshot makes a claim of the Broker's own"
        return Wait(CLAIM_EXISTS, why)
    return Wait(source.problem, source.why) if source is not None and source.problem else None
