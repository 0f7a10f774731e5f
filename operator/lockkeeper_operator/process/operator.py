"""The whole operator: waits until it leads, fills its caches, then works until it is stopped."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from typing import TypeVar

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.api.errors import ApiError
from lockkeeper_operator.api.kinds import JOURNAL_ANALYSIS, MONITORING_API, MONITORS
from lockkeeper_operator.api.server import ApiServer
from lockkeeper_operator.asking.admin_endpoint import (
    AdminEndpoints,
    BrokerRefusedError,
    BrokerSilentError,
)
from lockkeeper_operator.asking.poller import (
    DESTINATIONS_SECONDS,
    STATUS_SECONDS,
    AskedPod,
    Poller,
)
from lockkeeper_operator.caches.caches import BROKER_GROUP, TARGET_GROUP, Caches
from lockkeeper_operator.caches.reflector import Reflector
from lockkeeper_operator.caches.store import Store
from lockkeeper_operator.desired.subject import Surroundings
from lockkeeper_operator.names import MASTER
from lockkeeper_operator.observed import Manifest
from lockkeeper_operator.process.analysis_metrics import AnalysisFigures
from lockkeeper_operator.process.analysis_reconciler import AnalysisReconciler
from lockkeeper_operator.process.broker_reconciler import BrokerReconciler
from lockkeeper_operator.process.clock import Clock
from lockkeeper_operator.process.destination_reconciler import DestinationReconciler
from lockkeeper_operator.process.election import Candidate, Election
from lockkeeper_operator.process.endpoint import Endpoint
from lockkeeper_operator.process.metrics import Metrics, Source
from lockkeeper_operator.process.queue import WorkQueue
from lockkeeper_operator.process.recorder import Recorder
from lockkeeper_operator.process.tools import Tools
from lockkeeper_operator.process.waking import Wakes

KeyType = TypeVar("KeyType", bound=Hashable)
BROKER_WORKERS, DESTINATION_WORKERS, ASKING_WORKERS, ANALYSIS_WORKERS = 4, 8, 32, 2
MONITORS_SECONDS = 60.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How an operator is run. *namespaces* None stands for all; *resync* is in seconds.

    *analytics_image* is that of analyses which name none; empty: named after the brokers' image.
    """

    surroundings: Surroundings
    identity: str
    analytics_image: str = ""
    namespaces: tuple[str, ...] | None = None
    election: bool = True
    lease: str = "lockkeeper-operator"
    resync: float = 600.0
    host: str = "0.0.0.0"
    port: int = 8080


class Operator:
    """One replica."""

    def __init__(self, api: ApiServer, options: Options) -> None:
        self._api, self._options = api, options
        self._wakes = Wakes()
        self.metrics = Metrics()
        self._caches = Caches(api, options.namespaces, self._changed, self._watched)
        self._admin = AdminEndpoints()
        self._poller = Poller(self._admin)
        clock = Clock()
        tools = Tools(
            api=api,
            caches=self._caches,
            desks=self._wakes.desks,
            admin=self._admin,
            recorder=Recorder(api, clock, options.identity),
            clock=clock,
            ask=self._wakes.asking.add,
        )
        self._brokers = BrokerReconciler(tools, options.surroundings)
        self._destinations = DestinationReconciler(tools)
        self._analysed: WorkQueue[tuple[str, str]] = WorkQueue()
        self._analyses_store = Store(JOURNAL_ANALYSIS, lambda _: (), self._analysis_changed)
        around = options.surroundings
        image = options.analytics_image or analytics_image(around.image)
        self._analyses = AnalysisReconciler(
            tools, self._analyses_store, image, around.domain, self.metrics.analyses.ended
        )
        candidate = Candidate(
            options.surroundings.operator_namespace, options.lease, options.identity
        )
        self._election = Election(api, candidate)
        self.endpoint = Endpoint(self.metrics, lambda: True)
        self.working = asyncio.Event()
        """Set once it leads and knows all that there is."""
        self.metrics.watch(Source(self._depths, self._objects, lambda: api.requests))
        self.metrics.watch(AnalysisFigures(self._analyses_store.all))

    @property
    def leads(self) -> bool:
        """Whether this replica is the one that works."""
        return self._election.leads

    async def run(self) -> None:
        """Work until cancelled. Raises LeadershipLostError, OSError for a port in use."""
        await self.endpoint.start(self._options.host, self._options.port)
        try:
            if self._options.election:
                await self._election.win()
            self.metrics.leads.set(1)
            async with asyncio.TaskGroup() as group:
                if self._options.election:
                    group.create_task(self._election.keep(), name="election")
                await self._begin(group)
        except* Exception as failures:
            raise failures.exceptions[0] from None
        finally:
            self.metrics.leads.set(0)
            await self._election.resign()
            self._brokers.close()
            await self._admin.close()
            await self.endpoint.stop()

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        """Fill the caches, then let the workers in."""
        self._caches.start(group)
        await self._find_monitors(group)
        await self._caches.listed()
        for key in self._caches.brokers.names():
            self._wakes.brokers.add(key)
        log.info("knows %s", ", ".join(f"{n:g} {kind}" for kind, n in self._objects().items() if n))
        self.working.set()
        wakes, resync = self._wakes, self._options.resync
        for count, queue, work, kind, after in (
            (BROKER_WORKERS, wakes.brokers, self._brokers.reconcile, "Broker", resync),
            (DESTINATION_WORKERS, wakes.destinations, self._destinations.reconcile,
             "Destination", resync),
            (ASKING_WORKERS, wakes.asking, self._ask, "Asking", None),
            (ANALYSIS_WORKERS, self._analysed, self._analyses.reconcile, "JournalAnalysis", None),
        ):  # fmt: skip
            for number in range(count):
                name = f"{kind} {number}"
                group.create_task(self._work(queue, work, kind, after), name=name)
        group.create_task(self._look_for_monitors(group), name="monitors")
        for namespace in self._options.namespaces or (None,):
            watch = Reflector(
                self._api, JOURNAL_ANALYSIS, self._analyses_store, namespace, told=self._watched
            )
            group.create_task(watch.run(), name=f"watch analyses {namespace or ''}")

    async def _work(
        self,
        queue: WorkQueue[tuple[str, str]],
        work: Callable[[str, str], Awaitable[float | None]],
        kind: str,
        resync: float | None,
    ) -> None:
        """Take keys and look at them, for ever; a failure is repeated later."""
        loop = asyncio.get_running_loop()
        while True:
            # Work that waits for nothing must not keep the loop from everybody else.
            await asyncio.sleep(0)
            key, since = await queue.take()
            begun = loop.time()
            try:
                after = await work(*key)
            except (ApiError, BrokerSilentError, BrokerRefusedError) as error:
                delay = queue.retry(key, getattr(error, "retry_after", None) or 0.0)
                self.metrics.errors.labels(kind, type(error).__name__).inc()
                log.info("%s %s: %s; again in %.1f s", kind, "/".join(key), error, delay)
            except Exception as error:
                # A mistake of ours about one resource must not end the work on all others.
                delay = queue.retry(key)
                self.metrics.errors.labels(kind, type(error).__name__).inc()
                log.exception("%s %s; again in %.1f s", kind, "/".join(key), delay)
            else:
                queue.succeeded(key)
                after = resync if after is None else after
                if after is not None:
                    queue.add(key, after * random.uniform(0.9, 1.1))
            finally:
                queue.done(key)
                self.metrics.reconcile.labels(kind).observe(loop.time() - begun)
                self.metrics.latency.labels(kind).observe(loop.time() - since)

    async def _ask(self, namespace: str, name: str) -> float | None:
        """Ask the pods of a Broker; returns when to do it again."""
        key = (namespace, name)
        desk = self._wakes.desks.get(key)
        if desk is None or not desk.port:
            return None
        pods = tuple(
            AskedPod(
                pod["metadata"]["uid"],
                pod["status"]["podIP"],
                pod["metadata"].get("labels", {}).get(ROLE_LABEL) == MASTER,
            )
            for pod in self._caches.pods.group(BROKER_GROUP, namespace, name)
            if "podIP" in pod["status"]
        )
        has_any = bool(self._caches.destinations.names_in(BROKER_GROUP, namespace, name))
        news = await self._poller.ask(desk, pods, has_any)
        first, desk.heard = not desk.heard, True
        if news.pods:
            self._wakes.brokers.add(key)
        if news.master or first:
            self._wakes.destinations_of(self._caches, key)
        for kind, destination in news.destinations:
            group = (TARGET_GROUP, namespace, name, kind, destination)
            for each in self._caches.destinations.names_in(*group):
                self._wakes.destinations.add(each)
        if desk.unsettled:
            return desk.patience
        return DESTINATIONS_SECONDS if has_any else STATUS_SECONDS

    async def _find_monitors(self, group: asyncio.TaskGroup) -> None:
        """Learn which kinds of monitors the cluster knows, and watch them from now on."""
        known = self._brokers.surroundings.monitors
        try:
            found = await self._api.kinds_of(MONITORING_API)
        except ApiError as error:
            log.info("looking for monitors: %s", error)
            return
        kinds = [kind for kind in MONITORS if kind.name in found and kind.name not in known]
        if kinds:
            self._caches.start(group, kinds)
            await self._caches.listed()
            more = known | {kind.name for kind in kinds}
            self._brokers.surroundings = replace(self._brokers.surroundings, monitors=more)

    async def _look_for_monitors(self, group: asyncio.TaskGroup) -> None:
        while True:
            await asyncio.sleep(MONITORS_SECONDS)
            before = self._brokers.surroundings
            await self._find_monitors(group)
            if self._brokers.surroundings != before:
                for key in self._caches.brokers.names():
                    self._wakes.brokers.add(key)

    def _changed(self, kind: str, before: Manifest | None, after: Manifest | None) -> None:
        self._wakes.changed(self._caches, kind, before, after)

    def _analysis_changed(self, before: Manifest | None, after: Manifest | None) -> None:
        """Look at an analysis that is new, asks for something else, or is gone; statuses are
        the operator's own doing.
        """
        was, now = before or {}, after or {}
        metadata = (after or was)["metadata"]
        if before is None or after is None or was.get("spec") != now.get("spec"):
            self._analysed.add((metadata["namespace"], metadata["name"]))

    def _watched(self, kind: str, reason: str) -> None:
        self.metrics.watches.labels(kind, reason).inc()

    def _depths(self) -> dict[str, float]:
        wakes = self._wakes
        return {
            "Broker": len(wakes.brokers),
            "Destination": len(wakes.destinations),
            "Asking": len(wakes.asking),
            "JournalAnalysis": len(self._analysed),
        }

    def _objects(self) -> dict[str, float]:
        return {store.kind.name: len(store) for store in self._caches.stores()}


def analytics_image(broker_image: str) -> str:
    """Return the image of analyses of the same release: `a/lockkeeper:1` to
    `a/lockkeeper-analytics:1`.
    """
    folder, slash, name = broker_image.partition("@")[0].rpartition("/")
    name, colon, tag = name.partition(":")
    return f"{folder}{slash}{name}-analytics{colon}{tag}"
