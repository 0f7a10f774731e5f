"""One broker process: stand by for the lock, read the journal, serve, stop cleanly."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lockkeeper import speedups
from lockkeeper.broker.core import Broker
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.server.admin import Admin
from lockkeeper.server.admin.encryption import encryption_of
from lockkeeper.server.cluster.membership import Membership
from lockkeeper.server.cluster.pod_environment import PodEnvironment
from lockkeeper.server.configuration import Configuration
from lockkeeper.server.conversion import converted
from lockkeeper.server.engine import Engine
from lockkeeper.server.errors import listening_failed
from lockkeeper.server.fence import Fence
from lockkeeper.server.listeners import Listeners
from lockkeeper.server.networks.connectors import NetworkConnectors
from lockkeeper.server.recorder import FlightRecorder, cause_of_start
from lockkeeper.server.reloading import Reloading
from lockkeeper.server.roles import ROLES, STANDBY, STARTING, STOPPED, Role
from lockkeeper.server.settings import (
    LOOPBACK,
    declare_resource,
    policy_map,
)
from lockkeeper.server.storage import Storage, accepts_loss
from lockkeeper.server.usage import measured
from lockkeeper.server.views import door_view, master_view
from lockkeeper.store.base import Store, StoreError
from lockkeeper_api import Broker as BrokerResource
from lockkeeper_api import BrokerSpec
from lockkeeper_api.broker import Listener

logger = logging.getLogger(__name__)

# A predecessor that was killed may still be letting go of the port.
PORT_RETRY_SECONDS_AFTER_STANDBY = 5.0
PORT_RETRY_SECONDS = 0.5
LEASE_POLL_SECONDS = 0.05
FIRST_LOOK_SECONDS = 1.0
SERVE_OUT_SECONDS = 2.0
"""Until Services lead nobody to a master that stops.

kube-proxy takes changes over once a second, and two of them come: the pod is to end, and its label
goes. The next change, which leads to the next master, is then taken over at once.
"""
SWITCH_SECONDS = 0.0002
"""So long a thread that makes copies of files keeps the event loop from going on, each time that it
has let go of the interpreter for a system call; by default it would be 5 ms."""
LINGER_SECONDS = 2.0
"""For clients that dial the pod itself: see `_linger`."""
VERSION = version("lockkeeper-mq")


@dataclass(frozen=True)
class ProcessOptions:
    """Options of one process: a Broker with its Destinations, as replica number *replica*.

    *peers* are the admin addresses of all replicas. A *supervised* process ends with its
    standard input, so that it never outlives who started it. *cluster* is the pod that it runs
    in, None outside of pods; *secrets* the directory with what only the broker may know: with
    one, clients have to say who they are. *declared* is what the *files* say, before the options
    of the command line; both are given where there are files, which are read again then.
    """

    resource: BrokerResource
    directory: Path
    replica: int = 0
    peers: Sequence[str] = ()
    supervised: bool = False
    cluster: PodEnvironment | None = None
    secrets: Path | None = None
    declared: Configuration | None = None
    files: Sequence[Path] = ()
    accept_loss: bool = False


@dataclass
class BrokerProcess:
    """Runs one replica until it is told to stop."""

    options: ProcessOptions
    role: Role = STARTING
    since: float = field(default_factory=time.time)
    _engine: Engine | None = None
    _failure: StoreError | None = None
    _listeners: Listeners | None = None
    _networks: NetworkConnectors | None = None
    _epoch: int | None = None
    _takes_over: bool = False
    _unfit: str = ""
    _ending: bool = False
    _has_led: bool = False

    @property
    def name(self) -> str:
        """The name of the replica: its pod's, or as a StatefulSet would number it."""
        if self.options.cluster is not None:
            return self.options.cluster.pod.name
        return f"{self.options.resource.metadata.name}-{self.options.replica}"

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises StoreError or CannotRunError, which tell the way out.
        """
        level = logging.WARNING if speedups.running.is_amiss else logging.INFO
        logger.log(level, "runs %s", speedups.running)
        self._stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        if self.options.supervised:
            loop.add_reader(sys.stdin.fileno(), self._end)
        self._fence = Fence(self.options.files, self.name, self._stopping.set)
        self._reloading = self._begin_reloading()
        self._membership = Membership(None, self.options.resource, self._fail)
        self._admin = await self._start_admin()
        try:
            while not self._ending:
                await (self._stay_out() if self._fence.is_up else self._take_part())
                self._stopping.clear()
            await self._linger()
        finally:
            self._reloading.close()
            await self._admin.stop()
            if self.role != STOPPED:
                self._become("stopped")

    async def _linger(self) -> None:
        """Stay a moment after a term in a pod, whose network goes with it.

        Who still dials it is refused at once, and does not wait for an answer that never comes.
        """
        if self._has_led and self._is_in_cluster:
            await asyncio.sleep(LINGER_SECONDS)

    @property
    def _is_in_cluster(self) -> bool:
        """Whether clients find it by Services."""
        cluster = self.options.cluster
        return cluster is not None and cluster.api_server is not None

    def _end(self) -> None:
        self._ending = True
        self._stopping.set()

    async def _take_part(self) -> None:
        """Stand by and serve, until told to stop."""
        resource, cluster = self.options.resource, self.options.cluster
        self._membership = Membership(cluster, resource, self._fail)
        accept_loss = self.options.accept_loss or accepts_loss(resource, self.options.files)
        storage = Storage(self.options.directory, self._membership.lease, accept_loss)
        self._membership.begin()
        try:
            if await self._take_lock(storage):
                await self._serve(storage)
        finally:
            # The lease first: whoever gets the lock then finds it free.
            await self._membership.leave()
            storage.release()
            self._become("stopped")
        if self._failure is not None:
            raise self._failure

    async def _stay_out(self) -> None:
        """Hold nothing and answer questions, until the fence is taken away."""
        self._become("fenced")
        await self._stopping.wait()

    def _begin_reloading(self) -> Reloading:
        """Look for changes of the files from now on. Raises CannotRunError."""
        options = self.options
        return Reloading(
            options.resource,
            options.declared or Configuration(options.resource),
            options.files,
            options.secrets,
        )

    async def _start_admin(self) -> Admin:
        """Listen for questions about this process, whatever its role will be."""
        settings = self.options.resource.spec.admin
        admin = Admin(
            self.status,
            lambda: self._engine,
            self._reloading.take_configuration,
            self._fence.set_up,
            self.options.secrets,
        )
        host, port = settings.host or LOOPBACK, settings.port
        encryption = None
        if self.options.cluster is not None:
            encryption = encryption_of(self.options.secrets)
        elif port:
            port += self.options.replica
        if encryption is not None:
            self._reloading.watch(encryption.files, encryption.reload, encryption.seen)
        try:
            await admin.start(host, port, encryption, settings.tls_port)
        except OSError as error:
            way_out = "choose another one: spec.admin.port, or --admin HOST:PORT of one broker"
            raise listening_failed("admin endpoint", host, port, error, way_out) from error
        logger.info("serves its admin endpoint at http://%s:%d", host, admin.port)
        return admin

    def _become(self, event: str) -> None:
        """Take the role that *event* leads to; see `ROLES`."""
        self.role = role = ROLES.after(self.role, event)
        self.since = time.time()
        logger.info("is %s", role, extra={"role": str(role)})

    async def _take_lock(self, storage: Storage) -> bool:
        """Wait until this process holds the lock; returns False when told to stop before."""
        usual = self.options.resource.spec.locker.acquire_interval.total_seconds()
        lease = self._membership.lease
        if lease is not None:
            await lease.first_look(FIRST_LOOK_SECONDS)
        while not storage.try_lock():
            awaited = storage.awaited_lease
            if self.role != STANDBY and (awaited is None or not awaited.is_free):
                self._become("somebody else holds the lock")
            self._takes_over = self._could_take_over(storage)
            interval = usual if awaited is None else min(usual, LEASE_POLL_SECONDS)
            try:
                async with asyncio.timeout(interval):
                    await self._stopping.wait()
            except TimeoutError:
                continue
            return False
        return not self._stopping.is_set()

    def _could_take_over(self, storage: Storage) -> bool:
        """Tell whether nothing but the lock keeps this standby from being the master."""
        lease = self._membership.lease
        if lease is not None and not lease.is_watched:
            return False
        try:
            storage.examine()
        except StoreError as error:
            if self._unfit != str(error):
                self._unfit = str(error)
                logger.warning("could not take over: %s", error)
            return False
        self._unfit = ""
        return True

    async def _serve(self, storage: Storage) -> None:
        """Be the master."""
        waited = self.role == STANDBY
        self._become("takes the lock")
        listeners = self._listeners = Listeners(
            self.options.resource.spec.listeners, self.options.secrets, self._reloading.watch
        )
        try:
            await listeners.bind(PORT_RETRY_SECONDS_AFTER_STANDBY if waited else PORT_RETRY_SECONDS)
            await self._open(storage, listeners, waited)
        finally:
            listeners.close()

    async def _open(self, storage: Storage, listeners: Listeners, waited: bool) -> None:
        """Read the journal, let clients in, and serve until told to stop."""
        spec = measured(self.options.resource.spec, self.options.directory)
        store = storage.open(spec)
        given = self._reloading.broker
        broker = self._make_broker(store, spec)
        began = time.monotonic()
        # Nobody else looks at the broker yet; meanwhile the admin endpoint answers.
        past = await asyncio.to_thread(broker.recover)
        epoch = await self._membership.settle_epoch(past.epoch)
        for resource in self._reloading.destinations:
            declare_resource(broker, resource)
        logger.info("read the journal in %.2f s", time.monotonic() - began)
        recorder = FlightRecorder(broker, store, self.options.resource.spec.journal.recorder)
        _spare_the_collector()
        sys.setswitchinterval(SWITCH_SECONDS)
        lease = self._membership.lease
        deadline = None if lease is None else lease.deadline
        engine = self._engine = Engine(broker, store, recorder, self._fail, deadline)
        engine.stamp()
        now, self._epoch = engine.now, epoch
        store.begin_term(epoch, now, broker.identity, self.name)
        cause = cause_of_start(past.last_trace)
        details = {"brokerId": broker.broker_id, "replica": self.name, "epoch": epoch}
        details |= {"cause": cause} if cause else {}
        recorder.event("takeover" if waited else "start", now, **details)
        self._reloading.serve(engine, given, self.name)
        try:
            if not self._stopping.is_set():
                connectors = self._reloading.broker.spec.network_connectors
                networks = NetworkConnectors(engine, connectors)
                self._reloading.networks = networks
                await listeners.open(engine, networks)
                networks.announced = listeners.announced
                self._become("has read the journal")
                self._has_led = True
                self._membership.lead()
                self._networks = networks
                networks.begin()
                await self._stopping.wait()
                if self._failure is None:
                    await self._membership.step_down()
                    await self._serve_out()
                    await networks.stop()
        finally:
            listeners.close()
            if self._networks is not None:
                self._networks.abandon()
            self._networks = None
            self._close(engine, store, recorder)

    async def _serve_out(self) -> None:
        """Serve those who are connected until nobody else is led here; a second order ends it."""
        if self._is_in_cluster:
            self._stopping.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SERVE_OUT_SECONDS):
                    await self._stopping.wait()

    def _make_broker(self, store: Store, spec: BrokerSpec) -> Broker:
        resource = self._reloading.broker
        now = time.time_ns() // 1_000_000
        return Broker(
            store,
            resource.metadata.name,
            f"ID:{os.uname().nodename}-{os.getpid()}-{now}-0",
            policy_map(resource, self._reloading.destinations),
            converted(spec, BrokerSettings),
            now,
            self._reloading.authenticator,
        )

    def _fail(self, error: StoreError) -> None:
        self._failure = error
        self._stopping.set()

    def _close(self, engine: Engine, store: Store, recorder: FlightRecorder) -> None:
        """Let go of everything, in order: sockets, journal."""
        self._reloading.leave()
        engine.close()
        if self._failure is None:
            engine.stamp()
            now = engine.now
            engine.broker.streams.close()
            recorder.write_statistics(now)
            recorder.event("stop", now, replica=self.name)
            store.close()
        self._engine = self._epoch = None

    # What the admin endpoint tells

    def status(self) -> dict[str, Any]:
        """Return what this process is and does."""
        resource, lease = self.options.resource, self._membership.lease
        view: dict[str, Any] = {
            "broker": resource.metadata.name,
            "replica": self.name,
            "role": self.role,
            "since": round(self.since, 3),
            "version": VERSION,
            "takesOver": self.role == STANDBY and self._takes_over,
            "epoch": self._epoch,
            "lease": None if lease is None else lease.view(),
            "pid": os.getpid(),
            "data": str(self.options.directory),
            "listeners": [self._address_of(entry) for entry in resource.spec.listeners],
            "admin": f"http://{resource.spec.admin.host or LOOPBACK}:{self._admin.port}",
            "peers": list(self.options.peers),
            **self._reloading.status(),
        }
        if self._engine is not None:
            view |= master_view(self._engine.broker, self._engine.store)
            view |= door_view(self._engine.strangers)
        if self._networks is not None:
            view["bridges"] = self._networks.view()
        return view

    def _address_of(self, listener: Listener) -> str:
        """Return where *listener* is, with the port it found when it was to take any."""
        ports = self._listeners.ports if self._listeners is not None else {}
        port = ports.get(listener.name, listener.port)
        return f"{listener.protocol}://{listener.host or LOOPBACK}:{port}"


def _spare_the_collector() -> None:
    """Keep the garbage collector from walking over every waiting message.

    A full collection over 500,000 of them stops the broker for 140 to 170 ms; messages hold no
    reference cycles, so collections may be rare.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
