"""Looks at one Broker: observes, plans, carries out, tells."""

import asyncio

from pydantic import ValidationError

from lockkeeper_api import BrokerSpec
from lockkeeper_api.complaints import complaint
from lockkeeper_operator.api.kinds import CLAIM
from lockkeeper_operator.asking.admin_endpoint import Address
from lockkeeper_operator.asking.desk import Desk
from lockkeeper_operator.caches.caches import BROKER_GROUP
from lockkeeper_operator.desired.configuration import configuration
from lockkeeper_operator.desired.subject import Subject, Surroundings, subject_of
from lockkeeper_operator.events import Event, events_of_status, events_of_steps
from lockkeeper_operator.observed import Key, Manifest, Observed, Pod, pod_of
from lockkeeper_operator.plan import plan
from lockkeeper_operator.process.applying import Applier
from lockkeeper_operator.process.credentials import CredentialStore, Who
from lockkeeper_operator.process.tools import Tools
from lockkeeper_operator.status.broker_status import broker_status, invalid_status
from lockkeeper_operator.status.facts import Facts
from lockkeeper_operator.steps import Conflict, Refused, Step, Wait
from lockkeeper_operator.target import Desired, desired_of

OTHERS_SECONDS = 30.0
"""How often Brokers are looked at that use what nobody watches: Secrets and claims of others."""
WAITING_SECONDS = 5.0
ROUNDS_MAX = 3


class BrokerReconciler:
    """Brings Brokers to what they are to be."""

    def __init__(self, tools: Tools, surroundings: Surroundings) -> None:
        self._tools = tools
        self.surroundings = surroundings
        self._credentials = CredentialStore(tools.api, tools.caches)
        self._applier = Applier(tools.api, tools.caches, tools.admin)

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
            self._tools.desks.close((namespace, name))
            self._credentials.forget(namespace, name)
            return None
        try:
            spec = BrokerSpec.model_validate(resource.get("spec", {}))
        except ValidationError as error:
            now = asyncio.get_running_loop().time()
            self._tools.desks.open((namespace, name), now).heard = True
            await self._refuse(resource, error)
            return None
        subject, foreign = await self._subject(resource, spec)
        return await self._bring(resource, subject, foreign)

    async def _subject(self, resource: Manifest, spec: BrokerSpec) -> tuple[Subject, bool]:
        """Return the subject, and whether it is made from what nobody watches."""
        metadata = resource["metadata"]
        who = Who(metadata["namespace"], metadata["name"], metadata["uid"])
        found = await self._credentials.of(who, spec)
        subject = subject_of(
            resource, self.surroundings, found.passwords, found.hashes, found.admin_token
        )
        return subject, found.foreign or spec.storage.existing_claim is not None

    async def _bring(self, resource: Manifest, subject: Subject, foreign: bool) -> float | None:
        desk = self._desk_of(subject)
        desired = desired_of(subject)
        unseen: dict[Key, Manifest] = {}
        steps: tuple[Step, ...] = ()
        for _ in range(ROUNDS_MAX):
            observed = await self._observed(subject, desk, unseen)
            planned = plan(observed, desired)
            outcome = await self._applier.carry_out(
                planned, subject.namespace, self._addresses(subject, desk), configuration(subject)
            )
            steps = (*planned, *outcome.problems)
            if not outcome.unseen:
                break
            unseen |= outcome.unseen
        desk.unsettled = bool(steps) or not observed.pods or _is_unsettled(observed, desired)
        await self._tell(resource, Facts(observed, desired, steps))
        if any(isinstance(step, Wait) for step in steps):
            return WAITING_SECONDS
        # Nothing tells when others give way.
        in_the_way = any(isinstance(step, Conflict | Refused) for step in steps)
        return OTHERS_SECONDS if foreign or in_the_way else None

    def _desk_of(self, subject: Subject) -> Desk:
        """Return the Broker's desk, where whoever asks it finds port and token."""
        now = asyncio.get_running_loop().time()
        key = (subject.namespace, subject.name)
        desk = self._tools.desks.open(key, now)
        port, token = subject.spec.admin.port, subject.admin_token
        if (desk.port, desk.token) != (port, token):
            desk.port, desk.token = port, token
            self._tools.ask(key)
        return desk

    async def _observed(
        self, subject: Subject, desk: Desk, unseen: dict[Key, Manifest]
    ) -> Observed:
        namespace, name = subject.namespace, subject.name
        children = unseen | self._tools.caches.children_of(namespace, name)
        key = (CLAIM.name, subject.claim)
        if key not in children:
            claim = await self._tools.api.read_if_there(CLAIM, namespace, subject.claim)
            if claim is not None and subject.spec.storage.existing_claim is not None:
                children[key] = claim
        found = self._tools.caches.pods.group(BROKER_GROUP, namespace, name)
        pods = tuple(pod_of(pod, desk.reports.get(pod["metadata"]["uid"])) for pod in found)
        return Observed(children, tuple(pod for pod in pods if _is_own(pod, name)))

    def _addresses(self, subject: Subject, desk: Desk) -> dict[str, Address]:
        found = self._tools.caches.pods.group(BROKER_GROUP, subject.namespace, subject.name)
        return {
            pod["metadata"]["name"]: Address(pod["status"]["podIP"], desk.port, desk.token)
            for pod in found
            if "podIP" in pod["status"]
        }

    async def _tell(self, resource: Manifest, facts: Facts) -> None:
        for event in events_of_steps(facts.steps):
            await self._tools.recorder.tell(resource, event)
        previous = resource.get("status", {})
        generation = resource["metadata"]["generation"]
        status = broker_status(facts, previous, generation, self._tools.clock.text())
        if status is not None:
            await self._tools.write_status(resource, status)
            for event in events_of_status(previous, status):
                await self._tools.recorder.tell(resource, event)

    async def _refuse(self, resource: Manifest, error: ValidationError) -> None:
        """Tell what is wrong with a spec."""
        found = (complaint(BrokerSpec, each) for each in error.errors())
        problems = "; ".join(f"spec.{path}: {reason}" for path, reason in found)
        previous, metadata = resource.get("status", {}), resource["metadata"]
        now = self._tools.clock.text()
        status = invalid_status(problems, previous, metadata["generation"], now)
        if status is not None:
            await self._tools.write_status(resource, status)
            await self._tools.recorder.tell(resource, Event("Warning", "InvalidSpec", problems))


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
