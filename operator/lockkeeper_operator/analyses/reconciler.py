"""Looks at one JournalAnalysis: observes, plans, carries out, tells."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

from pydantic import ValidationError

from lockkeeper_api.complaints import complaint
from lockkeeper_api.journal_analysis import JournalAnalysisSpec
from lockkeeper_operator.analyses.desired.children import run
from lockkeeper_operator.analyses.engine import chosen_engine, missing_api
from lockkeeper_operator.analyses.kinds import EVERYWHERE, OF_SPARK
from lockkeeper_operator.analyses.names import ANALYSIS_LABEL
from lockkeeper_operator.analyses.observed import ObservedAnalysis
from lockkeeper_operator.analyses.plan import BACK_OFF, analysis_plan, due_in
from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.analyses.status.latest import latest_run
from lockkeeper_operator.analyses.status.status import (
    DISABLED,
    INVALID,
    after_refusal,
    analysis_status,
    refused_status,
)
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.brokers.journal import claim_name, journal_of
from lockkeeper_operator.kubernetes.caches.store import Store
from lockkeeper_operator.kubernetes.children.steps import Refused, Step, Wait
from lockkeeper_operator.kubernetes.children.unwatched import UnwatchedChildren
from lockkeeper_operator.kubernetes.events import Event
from lockkeeper_operator.kubernetes.jobs import ENDED
from lockkeeper_operator.kubernetes.manifests import Manifest, key_of
from lockkeeper_operator.kubernetes.times import written
from lockkeeper_operator.tools import Tools

ACTIVE_SECONDS = 5.0
"""How often a run is looked at while it goes on."""
REST_SECONDS = 60.0
SOON_SECONDS = 1.0
APIS_SECONDS = 60.0
"""How often to ask which of Spark's operators there are."""
ROUNDS_MAX = 3

Ended: TypeAlias = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class _Look:
    """All that is known of an analysis at a time."""

    subject: AnalysisSubject
    observed: ObservedAnalysis
    apis: frozenset[str]


class AnalysisReconciler:
    """Brings JournalAnalyses to what they are to be.

    *ended* hears the namespace and the status of every run that has ended.
    """

    def __init__(self, tools: Tools, store: Store, image: str, domain: str, ended: Ended) -> None:
        self._tools, self._store, self._ended = tools, store, ended
        self._image, self._domain = image, domain
        self._objects = UnwatchedChildren(tools.api, ANALYSIS_LABEL, EVERYWHERE, OF_SPARK)
        self._apis: frozenset[str] = frozenset()
        self._asked_at = -APIS_SECONDS
        self.pull_secrets: tuple[str, ...] = ()
        """With which nodes fetch the image."""
        self.enabled = True
        """Whether analyses are carried out at all."""
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        """What time it is."""

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Look at an analysis; returns the seconds after which to look again at the latest.

        Raises ApiError for what may work later.
        """
        resource = self._store.get(namespace, name)
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            # Its children go with it, by Kubernetes' own doing.
            return None
        try:
            spec = JournalAnalysisSpec.model_validate(resource["spec"])
        except ValidationError as error:
            found = (complaint(JournalAnalysisSpec, each) for each in error.errors())
            problems = "; ".join(f"spec.{path}: {reason}" for path, reason in found)
            await self._refuse(resource, INVALID, problems)
            return None
        if not self.enabled:
            await self._refuse(
                resource,
                DISABLED,
                "this operator carries out no analyses: set analytics.enabled of the chart",
            )
            return None
        return await self._bring(resource, await self._look(resource, spec))

    async def _refuse(self, resource: Manifest, reason: str, message: str) -> None:
        previous, generation = resource.get("status", {}), resource["metadata"]["generation"]
        now = written(self.now())
        await self._tools.write_status(
            resource, refused_status(reason, message, previous, generation, now)
        )

    async def _look(self, resource: Manifest, spec: JournalAnalysisSpec) -> _Look:
        metadata, status = resource["metadata"], resource.get("status", {})
        namespace, name = metadata["namespace"], metadata["name"]
        apis = await self._known_apis()
        broker = None
        if spec.source.broker is not None:
            broker = self._tools.caches.brokers.get(namespace, spec.source.broker)
        claim = claim_name(name, spec.source, broker)
        found = await self._objects.claim(namespace, claim)
        # Where a run that goes on has its journal does not change.
        fresh = all(each["state"] in ENDED for each in status.get("history", ()))
        node = await self._objects.node_of_claim(namespace, claim, fresh)
        before = status.get("engine") if status.get("history") else None
        subject = AnalysisSubject(
            name=name,
            namespace=namespace,
            uid=metadata["uid"],
            spec=spec,
            journal=journal_of(name, spec.source, broker, found, node),
            engine=chosen_engine(spec, apis, before),
            default_image=self._image,
            domain=self._domain,
            default_pull_secrets=self.pull_secrets,
        )
        return _Look(subject, await self._observed(namespace, name, apis, status), apis)

    async def _observed(
        self, namespace: str, name: str, apis: frozenset[str], status: Mapping[str, Any]
    ) -> ObservedAnalysis:
        """Return what there is: pods after runs, or one that has ended would lack last words."""
        children = await self._objects.children(namespace, name, apis)
        pods = await self._objects.pods(namespace, name)
        return ObservedAnalysis(children, tuple(pods), status)

    async def _known_apis(self) -> frozenset[str]:
        now = asyncio.get_running_loop().time()
        if now - self._asked_at >= APIS_SECONDS:
            self._apis, self._asked_at = await self._objects.apis(), now
        return self._apis

    async def _bring(self, resource: Manifest, look: _Look) -> float | None:
        subject, observed = look.subject, look.observed
        observe = partial(
            self._observed, subject.namespace, subject.name, look.apis, observed.status
        )
        missing = missing_api(subject.engine, look.apis)
        steps: tuple[Step, ...] = ()
        refused: list[Refused] = []
        for _ in range(0 if missing else ROUNDS_MAX):
            steps = analysis_plan(observed, subject, self.now())
            refused, unseen = await self._objects.carry_out(steps, subject.namespace)
            if not unseen:
                break
            observed = await observe()
            children = {**observed.children, **{key_of(each): each for each in unseen}}
            observed = replace(observed, children=children)
        if steps:
            observed = await observe()
        status = await self._tell(resource, subject, observed, steps, refused, missing)
        active = any(not each.ended for each in observed.runs)
        # A back-off ends at a time that is known.
        waiting = any(isinstance(step, Wait) and step.reason != BACK_OFF for step in steps)
        # What ended while it was begun is seen with it: what follows from that is still to be done.
        is_busy = active or waiting or observed.children != look.observed.children
        longest = ACTIVE_SECONDS if is_busy else REST_SECONDS
        return _rest(longest, None if missing else due_in(status, subject, self.now()))

    async def _tell(
        self,
        resource: Manifest,
        subject: AnalysisSubject,
        observed: ObservedAnalysis,
        steps: tuple[Step, ...],
        refused: list[Refused],
        missing: str,
    ) -> Mapping[str, Any]:
        """Write the status, and tell what has happened; returns the status."""
        previous: dict[str, Any] = resource.get("status", {})
        known = previous
        now = self.now()
        key = key_of(run(subject))
        said = [each.message for each in refused]
        if any((each.kind, each.name) == key for each in refused):
            known = after_refusal(previous, said[-1], now)
        runs, scheduled = observed.runs, subject.spec.schedule is not None
        latest = latest_run(runs, subject, previous)
        facts = AnalysisFacts(
            latest=latest,
            steps=steps,
            scheduled=scheduled,
            there=key in observed.children or not (scheduled or latest is None),
            missing_api=missing,
            refusal="; ".join(said) or known.get("submission", {}).get("message", ""),
        )
        generation = resource["metadata"]["generation"]
        status = analysis_status(facts, runs, subject, known, generation, now) or known
        if status != previous:
            await self._tools.write_status(resource, status)
            await self._tell_of_ends(resource, previous, status)
        for each in refused:
            message = f"{each.kind} {each.name}: {each.message}"
            await self._tools.recorder.tell(resource, Event("Warning", "Refused", message))
        return status

    async def _tell_of_ends(self, resource: Manifest, previous: Manifest, status: Manifest) -> None:
        """Tell of runs that ended since the status before."""
        before = {each["name"]: each["state"] for each in previous.get("history", ())}
        for each in status.get("history", ()):
            if each["state"] not in ENDED or each["state"] == before.get(each["name"]):
                continue
            self._ended(resource["metadata"]["namespace"], each)
            if each["state"] == "Succeeded":
                event = Event("Normal", "RunSucceeded", f"{each['name']}: {each.get('result')}")
                await self._tools.recorder.tell(resource, event)
                await self._tell_of_rules(resource, each)
            if each["state"] == "Failed":
                event = Event("Warning", "RunFailed", f"{each['name']}: {each.get('message')}")
                await self._tools.recorder.tell(resource, event)

    async def _tell_of_rules(self, resource: Manifest, run: Mapping[str, Any]) -> None:
        """Tell of the rules that *run* found broken."""
        for rule in run.get("brokenRules", ()):
            event = Event("Warning", "RuleBroken", f"{run['name']}: {rule}")
            await self._tools.recorder.tell(resource, event)


def _rest(longest: float, due: timedelta | None) -> float:
    """Return for how many seconds there is nothing to do, *longest* at most."""
    if due is None:
        return longest
    # Not before: the queue looks up to a tenth earlier.
    return min(longest, max(due.total_seconds() * 1.12, SOON_SECONDS))
