"""The whole operator: waits until it leads, fills its stores, then works until it is stopped."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from lockkeeper_operator.analyses.metrics import AnalysisFigures
from lockkeeper_operator.analyses.reconciler import AnalysisReconciler
from lockkeeper_operator.backups.reconciler import BackupReconciler
from lockkeeper_operator.brokers.reconciler import BrokerReconciler
from lockkeeper_operator.certificates.authority import Authority, Trust
from lockkeeper_operator.destinations.reconciler import DestinationReconciler
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.api.watching import WatchedRequests
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.caches.census import Census
from lockkeeper_operator.kubernetes.clock import Clock
from lockkeeper_operator.kubernetes.cordons import Cordons
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.namespaces import Namespaces
from lockkeeper_operator.kubernetes.recorder import Recorder
from lockkeeper_operator.networks.observing import NetworkObserver
from lockkeeper_operator.networks.reconciler import NetworkReconciler
from lockkeeper_operator.polling.admin_endpoint import AdminEndpoints
from lockkeeper_operator.polling.poll_state import BrokerKey
from lockkeeper_operator.polling.poller import Poller
from lockkeeper_operator.process.election import Candidate, Election, LeadershipLostError
from lockkeeper_operator.process.endpoint import Endpoint
from lockkeeper_operator.process.inquiry import Inquiry
from lockkeeper_operator.process.metrics import Metrics, Source
from lockkeeper_operator.process.options import Options
from lockkeeper_operator.process.queue import WorkQueue
from lockkeeper_operator.process.upkeep import Upkeep, places_of
from lockkeeper_operator.process.waking import Wakes, asked_anew, broker_of
from lockkeeper_operator.process.workers import Work, work
from lockkeeper_operator.tools import Tools

BROKER_WORKERS, DESTINATION_WORKERS, ASKING_WORKERS, ANALYSIS_WORKERS = 4, 8, 32, 2
BACKUP_WORKERS, NETWORK_WORKERS = 2, 1
AUTHORITY_SUFFIX = "-authority"
"""Of the Secret with the operator's authority, behind the name of its Lease."""
log = logging.getLogger(__name__)


class Operator:
    """One replica. *stop* ends the process it runs in, whose framework then calls `stop`; when that
    is done, *stopped* is called.
    """

    def __init__(
        self,
        api: ApiServer,
        options: Options,
        stop: Callable[[], None],
        stopped: Callable[[], None] = lambda: None,
    ) -> None:
        self.api, self.options, self._stop, self._stopped = api, options, stop, stopped
        self._wakes = Wakes()
        self.metrics = Metrics()
        around = options.installation
        self._analysed: WorkQueue[tuple[str, str]] = WorkQueue()
        self._saved: WorkQueue[tuple[str, str]] = WorkQueue()
        analysed, saved = asked_anew(self._analysed), asked_anew(self._saved)
        self.caches = Caches(self._changed, analysed, saved, around.class_name)
        self._admin = AdminEndpoints()
        self._namespaces = Namespaces(api, self.caches.namespaces)
        self.authority = Authority(
            api, around.operator_namespace, f"{options.lease}{AUTHORITY_SUFFIX}", self._trusted
        )
        self._cordons = Cordons(api, self._cordons_changed)
        self._tools = self._made_tools()
        self._observer = NetworkObserver(self._tools, around.domain)
        self._networks = NetworkReconciler(self._tools, self._observer, self._wake)
        self._brokers = BrokerReconciler(self._tools, options.installation, self._observer.parts_of)
        self._destinations = DestinationReconciler(self._tools, self._observer.bridge_filter_of)
        image = options.analytics_image or analytics_image(around.image)
        self._analyses = AnalysisReconciler(
            self._tools, self.caches.analyses, image, around.domain, self.metrics.analyses.ended
        )
        self._analyses.enabled = options.analytics
        self._analyses.pull_secrets = around.pull_secrets
        self._backups = BackupReconciler(
            self._tools, self.caches.backups, around.image, around.pull_secrets
        )
        self._backups.enabled = options.backups
        self._inquiry = Inquiry(Poller(self._admin), self.caches, self._wakes)
        places = places_of(options.namespaces)
        self.upkeep = Upkeep(
            Census(api, self.caches), places, self.metrics, self._optional_kinds_changed
        )
        self.watched_requests = WatchedRequests(api, places, self.upkeep)
        candidate = Candidate(around.operator_namespace, options.lease, options.identity)
        self._election = Election(api, candidate)
        self.endpoint = Endpoint(self.metrics, self.problems)
        self._tasks: set[asyncio.Task[None]] = set()
        self.working = threading.Event()
        """Set once it leads and knows all that there is."""
        self.failure = ""
        """Why it ended by itself."""
        self.metrics.watch(Source(self._depths, self._objects, lambda: api.requests))
        self.metrics.watch(AnalysisFigures(self.caches.analyses.all))

    @property
    def leads(self) -> bool:
        """Whether this replica is the one that works."""
        return self._election.leads

    def problems(self) -> tuple[str, ...]:
        """Return why it does not do its work, or would not; none where it is ready."""
        return tuple(self._problems())

    async def start(self) -> None:
        """Lead, list, and let the workers in. Raises OSError for a port in use."""
        try:
            await self.endpoint.start(self.options.host, self.options.port)
            if self.options.election:
                await self._election.win()
                self._begin(self._election.keep(), "election")
            self.metrics.leads.set(1)
            await self.upkeep.fill()
            await self.authority.begin()
        except BaseException:
            await self.stop()
            raise
        for key in self.caches.brokers.names():
            self._wakes.brokers.add(key)
        log.info(
            "the caches hold %s",
            ", ".join(f"{n:g} {kind}" for kind, n in self._objects().items() if n),
        )
        resync, wakes = self.options.resync, self._wakes
        for todo in (
            Work("Broker", BROKER_WORKERS, wakes.brokers, self._brokers.reconcile, resync),
            Work(
                "Destination", DESTINATION_WORKERS, wakes.destinations,
                self._destinations.reconcile, resync,
            ),
            Work(
                "BrokerNetwork", NETWORK_WORKERS, wakes.networks, self._networks.reconcile, resync
            ),
            Work("Asking", ASKING_WORKERS, wakes.asking, self._inquiry.ask),
            Work("JournalAnalysis", ANALYSIS_WORKERS, self._analysed, self._analyses.reconcile),
            Work("JournalBackup", BACKUP_WORKERS, self._saved, self._backups.reconcile),
        ):  # fmt: skip
            for number in range(todo.count):
                self._begin(work(todo, self.metrics), f"{todo.kind} {number}")
        self._begin(self.upkeep.keep(resync), "upkeep")
        self._begin(self._namespaces.keep(), "namespaces")
        self._begin(self.authority.keep(), "authority")
        if self.options.namespaces is None:
            # Nodes are nobody's namespace: with some alone there is no right to see any.
            self._begin(self._cordons.keep(), "cordons")
        self.working.set()

    def request_stop(self) -> None:
        """Let the process it runs in end."""
        self._stop()

    async def stop(self) -> None:
        """End all work and let go of everything; what was begun is done again by who follows."""
        self.metrics.leads.set(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._election.resign()
        self._brokers.close()
        self._observer.close()
        await self._admin.close()
        await self.endpoint.stop()
        await self.api.close()
        self._stopped()

    def _begin(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Do something until the end; that it ends before is the end of everything."""
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        self.failure = f"{task.get_name()}: {error}"
        # Before all else: whoever follows may work already.
        self.api.read_only = self.failure
        lost = isinstance(error, LeadershipLostError)
        log.error("%s", self.failure, exc_info=None if lost else error)
        self._stop()

    def _problems(self) -> Iterator[str]:
        if self.failure:
            yield self.failure
            return
        if self.options.election and not self.leads:
            if not self._election.holder:
                yield f"no leader is known: {self._election.problem or 'the Lease is not read yet'}"
            return
        for place, reason in self.upkeep.unlisted.items():
            yield f"{place}: {reason}"
        if self.authority.problem:
            yield self.authority.problem
        elif not self.working.is_set() and not self.upkeep.unlisted:
            yield "is about to begin"
        for place, reason in self.watched_requests.problems.items():
            yield f"{place} are not watched: {reason}"
        for (verb, kind), answer in self.api.unwritable.items():
            yield f"{verb} {kind}: {answer}"

    def _made_tools(self) -> Tools:
        clock = Clock()
        return Tools(
            api=self.api,
            caches=self.caches,
            namespaces=self._namespaces,
            poll_states=self._wakes.poll_states,
            admin=self._admin,
            authority=self.authority,
            recorder=Recorder(self.api, clock, self.options.identity),
            clock=clock,
            ask=self._wakes.asking.add,
            cordoned=lambda: self._cordons.nodes,
            brokers_version=lambda: self._wakes.brokers_version,
            absent=lambda kind: self.upkeep.lost(kind),
        )

    def _wake(self, broker: BrokerKey) -> None:
        """Have a Broker looked at, and its Destinations."""
        self._wakes.brokers.add(broker)
        self._wakes.destinations_of(self.caches, broker)

    def _trusted(self, trust: Trust) -> None:
        self._admin.trust(trust.authorities)
        for key in self.caches.brokers.names():
            self._wakes.brokers.add(key)

    def _optional_kinds_changed(self, kinds: frozenset[str]) -> None:
        self._brokers.installation = replace(self._brokers.installation, optional_kinds=kinds)
        for key in self.caches.brokers.names():
            self._wakes.brokers.add(key)

    def _cordons_changed(self, nodes: frozenset[str]) -> None:
        """Look at the Brokers that have pods on *nodes*."""
        for pod in self.caches.pods.all():
            if pod.get("spec", {}).get("nodeName") in nodes:
                self._wakes.brokers.add(broker_of(pod["metadata"]))

    def _changed(self, kind: str, before: Manifest | None, after: Manifest | None) -> None:
        self._wakes.changed(self.caches, kind, before, after)

    def _depths(self) -> dict[str, float]:
        wakes = self._wakes
        return {
            "Broker": len(wakes.brokers),
            "Destination": len(wakes.destinations),
            "BrokerNetwork": len(wakes.networks),
            "Asking": len(wakes.asking),
            "JournalAnalysis": len(self._analysed),
            "JournalBackup": len(self._saved),
        }

    def _objects(self) -> dict[str, float]:
        return {store.kind.name: len(store) for store in self.caches.stores()}


def analytics_image(broker_image: str) -> str:
    """Return the image of analyses of the same release: `a/lockkeeper:1` to
    `a/lockkeeper-analytics:1`.
    """
    folder, slash, name = broker_image.partition("@")[0].rpartition("/")
    name, colon, tag = name.partition(":")
    return f"{folder}{slash}{name}-analytics{colon}{tag}"
