"""Looks at one Broker: observes, plans, carries out, tells."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from lockkeeper_api import BrokerSpec
from lockkeeper_operator.brokers.applying import Applier
from lockkeeper_operator.brokers.bootstrapping import STATEFUL_SET, filling
from lockkeeper_operator.brokers.certificates import Certificates
from lockkeeper_operator.brokers.credentials import CredentialStore, Who
from lockkeeper_operator.brokers.desired.configuration import configuration
from lockkeeper_operator.brokers.desired.first_journal import FirstJournal, first_journal
from lockkeeper_operator.brokers.desired.network_part import PartsOf
from lockkeeper_operator.brokers.desired.subject import Installation, Subject, subject_of
from lockkeeper_operator.brokers.desired.target import Desired, desired_of
from lockkeeper_operator.brokers.events import events_of_status, events_of_steps
from lockkeeper_operator.brokers.handovers import Handovers
from lockkeeper_operator.brokers.observed import Observed, Pod, pod_of
from lockkeeper_operator.brokers.plan import plan
from lockkeeper_operator.brokers.pods.draining import handover_for_drain
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.brokers.status.status import (
    broker_status,
    failed_status,
    invalid_status,
)
from lockkeeper_operator.brokers.steps import Fence, Push, Step
from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import CLAIM, JOB, LEASE
from lockkeeper_operator.kubernetes.caches.caches import BROKER_GROUP
from lockkeeper_operator.kubernetes.caches.packing import trimmed
from lockkeeper_operator.kubernetes.children.steps import Apply, Conflict, Create, Refused, Wait
from lockkeeper_operator.kubernetes.children.unwatched import UnwatchedChildren
from lockkeeper_operator.kubernetes.events import Event
from lockkeeper_operator.kubernetes.jobs import failures_of
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.names import BOOTSTRAP_LABEL
from lockkeeper_operator.polling.admin_endpoint import Address
from lockkeeper_operator.polling.poll_state import PollState, asked_pod
from lockkeeper_operator.tools import Tools

OTHERS_SECONDS = 30.0
"""How often Brokers are looked at that use what nobody watches: Secrets and claims of others."""
WAITING_SECONDS = 5.0
FAILING_SECONDS = 3.0
"""For how long the API server may answer no before that is told; one that is away tells nothing."""
ROUNDS_MAX = 4


class BrokerReconciler:
    """Brings Brokers to what they are to be."""

    def __init__(self, tools: Tools, installation: Installation, parts_of: PartsOf) -> None:
        self._tools, self._parts_of = tools, parts_of
        self.installation = installation
        self._credentials = CredentialStore(tools.api, tools.caches)
        self._certificates = Certificates(tools.authority, tools.api, tools.caches)
        self._applier = Applier(tools.api, tools.caches, tools.admin, tools.absent)
        self._bootstraps = UnwatchedChildren(tools.api, BOOTSTRAP_LABEL, (JOB,))
        self._failing: dict[tuple[str, str], float] = {}
        """Brokers at which looks could not be ended, since when."""
        self._handovers = Handovers()

    def close(self) -> None:
        """Let go of what is held."""
        self._credentials.close()

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Look at a Broker; returns the seconds after which to look again at the latest.

        Raises ApiError for what may work later.
        """
        resource = self._tools.caches.brokers.get(namespace, name)
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            # Its children go with it, by Kubernetes' own doing.
            self._tools.poll_states.close((namespace, name))
            self._credentials.forget(namespace, name)
            self._failing.pop((namespace, name), None)
            self._handovers.forget((namespace, name))
            children = self._tools.caches.children_of(namespace, name).values()
            self._applier.clearing.forget(children)
            self._applier.answers.forget(children)
            return None
        try:
            spec = BrokerSpec.model_validate(resource.get("spec", {}))
        except ValidationError as error:
            now = asyncio.get_running_loop().time()
            self._tools.poll_states.open((namespace, name), now).heard = True
            await self._tools.refuse(resource, BrokerSpec, error, invalid_status)
            return None
        try:
            subject, foreign = await self._subject(resource, spec)
            after = await self._bring(resource, subject, foreign)
        except ApiError as error:
            # Of a namespace that is being deleted there is nothing to tell: the Broker goes, too.
            if error.status and not error.namespace_ends:
                await self._note_failure(resource, error)
            raise
        self._failing.pop((namespace, name), None)
        return after

    async def _subject(self, resource: Manifest, spec: BrokerSpec) -> tuple[Subject, bool]:
        """Return the subject, and whether it is made from what nobody watches."""
        metadata = resource["metadata"]
        who = Who(metadata["namespace"], metadata["name"], metadata["uid"])
        parts = await self._parts_of(who.namespace, who.name)
        of_networks = {part.user: part.password for part in parts if part.is_dialled}
        found = await self._credentials.of(who, spec, of_networks)
        subject = subject_of(
            resource,
            self.installation,
            found.passwords,
            found.hashes,
            found.admin_token,
            self._certificates.of_admin(who, self.installation.domain),
            self._first_journal(who.namespace, spec),
            await self._certificates.of_listeners(who, spec, self.installation),
            found.authority,
            parts,
        )
        foreign = found.foreign or any(part.dials_encrypted for part in parts)
        return subject, foreign or spec.storage.existing_claim is not None

    def _first_journal(self, namespace: str, spec: BrokerSpec) -> FirstJournal | None:
        """Return what the journal is to be filled with before the first start, None for nothing."""
        if spec.bootstrap is None:
            return None
        backup = spec.bootstrap.backup
        found = None if backup is None else self._tools.caches.backups.get(namespace, backup)
        return first_journal(spec.bootstrap, found)

    async def _bring(self, resource: Manifest, subject: Subject, foreign: bool) -> float | None:
        state = self._poll_state_of(subject)
        desired = desired_of(subject)
        unseen: dict[Key, Manifest] = {}
        stuck: dict[Key, Conflict | Refused] = {}
        done: list[Step] = []
        # A master tells its term; what was told of it stays.
        has_served = "epoch" in resource.get("status", {})
        for _ in range(ROUNDS_MAX):
            observed = replace(
                await self._observed(subject, state, unseen), stuck=stuck, has_served=has_served
            )
            observed = self._with_patience(subject, observed, desired)
            steps = plan(observed, desired)
            outcome = await self._applier.carry_out(
                steps,
                subject.namespace,
                self._addresses(subject, state),
                configuration(subject),
            )
            problems = {(each.kind, each.name): each for each in outcome.problems}
            without = problems.keys() | outcome.unchanged
            taken = (step for step in steps if step not in outcome.untaken)
            done += [step for step in taken if _child_of(step) not in without]
            if not outcome.unseen and not without:
                break
            unseen |= outcome.unseen
            stuck |= problems
        state.unsettled = bool(steps) or not observed.pods or _is_unsettled(observed, desired)
        news = tuple(problems[key] for key in problems if key not in observed.stuck)
        facts = Facts(observed, desired, (*steps, *news))
        await self._tell(resource, facts, (*done, *news), state.heard)
        if any(isinstance(step, Push | Fence) for step in steps):
            # What became of that, brokers report; to who does not, it is told again.
            self._tools.ask((subject.namespace, subject.name))
            return WAITING_SECONDS
        if any(isinstance(step, Wait) for step in steps):
            return WAITING_SECONDS
        # Nothing tells when others give way.
        return OTHERS_SECONDS if foreign or stuck else None

    def _poll_state_of(self, subject: Subject) -> PollState:
        """Return the Broker's state, where whoever asks it finds what opens it."""
        now = asyncio.get_running_loop().time()
        key = (subject.namespace, subject.name)
        state = self._tools.poll_states.open(key, now)
        opening = (subject.spec.admin.port, subject.admin_token, subject.admin_host)
        if (state.port, state.token, state.name) != opening:
            state.port, state.token, state.name = opening
            self._tools.ask(key)
        return state

    async def _observed(
        self, subject: Subject, state: PollState, unseen: dict[Key, Manifest]
    ) -> Observed:
        namespace, name = subject.namespace, subject.name
        children = unseen | self._tools.caches.children_of(namespace, name)
        lease = await self._tools.api.read_if_there(LEASE, namespace, name)
        if lease is not None:
            children[LEASE.name, name] = trimmed({**lease, "kind": LEASE.name})
        key = (CLAIM.name, subject.claim)
        if key not in children:
            claim = await self._tools.api.read_if_there(CLAIM, namespace, subject.claim)
            if claim is not None and subject.spec.storage.existing_claim is not None:
                children[key] = claim
        jobs_pods: list[Manifest] = []
        if (STATEFUL_SET, name) not in children:
            children |= await self._bootstraps.children(namespace, name, frozenset())
            jobs_pods = await self._bootstraps.pods(namespace, name)
        found = self._tools.caches.pods.group(BROKER_GROUP, namespace, name)
        pods = tuple(pod_of(pod, state.reports.get(pod["metadata"]["uid"])) for pod in found)
        own = tuple(pod for pod in pods if _is_own(pod, name))
        tolerated = {
            key: self._applier.clearing.tolerated(child) for key, child in children.items()
        }
        return Observed(
            children,
            own,
            tolerated={key: at for key, at in tolerated.items() if at},
            answers=self._applier.answers.about(children),
            cordoned=self._tools.cordoned(),
            bootstrap_failures=failures_of(jobs_pods),
            filling=filling(jobs_pods),
        )

    def _with_patience(self, subject: Subject, observed: Observed, desired: Desired) -> Observed:
        """Return what was *observed*, and whether a hand-over has had its time."""
        key = (subject.namespace, subject.name)
        if desired.paused or handover_for_drain(observed, desired) is None:
            self._handovers.rest(key, observed)
            return observed
        now = asyncio.get_running_loop().time()
        return replace(observed, gave_up=self._handovers.gave_up(key, observed, now))

    def _addresses(self, subject: Subject, state: PollState) -> dict[str, Address]:
        found = self._tools.caches.pods.group(BROKER_GROUP, subject.namespace, subject.name)
        asked = ((pod["metadata"]["name"], asked_pod(pod)) for pod in found)
        return {name: state.address(pod) for name, pod in asked if pod is not None}

    async def _tell(
        self, resource: Manifest, facts: Facts, done: Sequence[Step], heard: bool
    ) -> None:
        for event in dict.fromkeys(events_of_steps(done)):
            await self._tools.recorder.tell(resource, event)
        previous = resource.get("status", {})
        generation = resource["metadata"]["generation"]
        if not heard and previous.get("observedGeneration") == generation:
            # Nobody was asked yet since this process began: what was told before still counts.
            return
        status = broker_status(facts, previous, generation, self._tools.clock.text())
        if status is not None:
            await self._tools.write_status(resource, status)
            for event in events_of_status(previous, status):
                await self._tools.recorder.tell(resource, event)

    async def _note_failure(self, resource: Manifest, error: ApiError) -> None:
        """Tell what keeps failing, as far as the server lets it be told."""
        key = (resource["metadata"]["namespace"], resource["metadata"]["name"])
        now = asyncio.get_running_loop().time()
        if now - self._failing.setdefault(key, now) < FAILING_SECONDS:
            return
        previous, generation = resource.get("status", {}), resource["metadata"]["generation"]
        status = failed_status(str(error), previous, generation, self._tools.clock.text())
        if status is None:
            return
        with suppress(ApiError):
            await self._tools.write_status(resource, status)
            event = Event("Warning", "ReconcileFailed", str(error))
            await self._tools.recorder.tell(resource, event)


def _child_of(step: Step) -> Key | None:
    return key_of(step.manifest) if isinstance(step, Create | Apply) else None


def _is_own(pod: Pod, broker: str) -> bool:
    """Return whether a pod's name is one that the StatefulSet gives."""
    stem, _, number = pod.name.rpartition("-")
    return stem == broker and number.isdigit()


def _is_unsettled(observed: Observed, desired: Desired) -> bool:
    """Return whether pods are not yet what they are to be, as far as they say."""
    reports = [pod.report for pod in observed.pods]
    return (
        len(observed.pods) != len(desired.pods)
        or not all(pod.ready for pod in observed.pods)
        or any(
            report is None or report.configuration not in (None, desired.configuration)
            for report in reports
        )
    )
