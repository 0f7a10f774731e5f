"""A master and its standby over one directory: whole broker processes, started anew."""

import json
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulation.cluster import Cluster
from simulation.hub import SECOND, Process
from simulation.install import World
from simulation.loop import Loop

import lockkeeper.server.cluster.membership as membership
import lockkeeper.server.process as process_module
from lockkeeper.server.cluster.identity import PodIdentity
from lockkeeper.server.cluster.pod_environment import ApiServerAccess, PodEnvironment
from lockkeeper.server.configuration import Configuration, hash_of, read_files
from lockkeeper.server.process import BrokerProcess, ProcessOptions
from lockkeeper.server.roles import MASTER, RECOVERING
from lockkeeper.store.base import StoreError
from lockkeeper_api import Broker

FIRST_PORT = 61616
SERVICE_PORT = 1
NAMES = ("pair-0", "pair-1")
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases/pair"


class NoAdmin:
    """The admin endpoint is left out."""

    port = 0

    def __init__(self, *_: object) -> None:
        pass

    async def start(self, *_: object) -> None:
        pass

    async def stop(self) -> None:
        pass


class Replica:
    """One pod: a process, and the next one when that has ended."""

    def __init__(self, pair: "Pair", number: int) -> None:
        self.name = NAMES[number]
        self.port = FIRST_PORT + number
        self.process: Process | None = None
        self.broker: BrokerProcess | None = None
        self._pair = pair
        self._number = number
        # Each pod has its own, also by the same name; a process that ends leaves it as it is.
        self._pods = 1
        self._away_until = 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive

    @property
    def is_master(self) -> bool:
        """Tell whether it serves and is not about to end."""
        broker = self.broker
        return (
            self.is_alive
            and broker is not None
            and broker.role == MASTER
            and not broker._ending
            and broker._failure is None
        )

    def start(self) -> None:
        """Begin a process."""
        world = self._pair.world
        process = self.process = world.start(self.name)
        # A clock that is wrong stays wrong: it is the machine's.
        process.wall_offset = self._pair.wall_offsets[self._number]
        process.at_end.append(lambda: self._pair.ended(self))
        world.hub.spawn(process, lambda: self._run(process))

    def _run(self, process: Process) -> None:
        pair = self._pair
        hub = pair.world.hub
        # It has all that a broker asks of a loop, and no more.
        loop = Loop(  # type: ignore[abstract]
            hub, pair.world.kernel, pair.world.network, process
        )
        pod_environment = None
        if pair.has_lease:
            pod = PodIdentity(self.name, f"uid-{self._number}-{self._pods}", "default")
            pod_environment = PodEnvironment(pod, ApiServerAccess("http://api"))
        resource, file = pair.resource_of(self.port), pair.file_of(self.port)
        options = ProcessOptions(
            resource,
            pair.directory,
            self._number,
            cluster=pod_environment,
            declared=Configuration(resource, (), hash_of(read_files([file]))),
            files=[file],
            accept_loss=pair.accepts_loss,
        )
        broker = self.broker = BrokerProcess(options)
        become = broker._become

        def become_and_tell(event: str) -> None:
            become(event)
            pair.became(self, broker.role)

        self.broker._become = become_and_tell  # type: ignore[method-assign]
        try:
            loop.run_until_complete(self.broker.run())
            pair.note(f"{self.name} ended")
        except Exception as error:
            pair.ended_with(self, error)
        hub.kill(process)

    def begin(self) -> None:
        """Start a process, unless there is one or its pod is still to come."""
        hub = self._pair.world.hub
        if self.is_alive or not self._pair.is_running:
            return
        if self._away_until > hub.now:
            hub.call_at(self._away_until, self.begin)
        else:
            self.start()

    def lose(self, seconds: float) -> None:
        """Lose the machine; so much later another one has the pod, which is a new one."""
        process, world = self.process, self._pair.world
        if process is None or not process.is_alive:
            return
        self._pods += 1
        self._away_until = world.hub.now + int(seconds * SECOND)
        world.network.lose_machine(process)
        world.hub.kill(process)

    def terminate(self) -> None:
        """Ask it to end: SIGTERM."""
        if self.process is not None:
            handler = self.process.locals.get(f"signal {int(signal.SIGTERM)}")
            if handler is not None:
                handler()


class Pair:
    """Two replicas and who starts them again."""

    def __init__(
        self,
        world: World,
        directory: Path,
        configuration: Path,
        spec: dict[str, Any],
        has_lease: bool,
    ) -> None:
        self.world = world
        self.directory = directory
        self.has_lease = has_lease
        self.wall_offsets = [0, 0]
        self.log: list[str] = []
        self.endings: list[str] = []
        self.on_new_master: Callable[[], None] = lambda: None
        self.restart_seconds = (0.2, 2.0)
        self.is_running = True
        self.accepts_loss = False
        self.refusals: list[StoreError] = []
        self.losses: list[object] = []
        # Who has read the journal last.
        self.reader: Process | None = None
        self._configuration = configuration
        self._spec = spec
        self.cluster = Cluster(world.hub)
        self.cluster.enter(LEASE_PATH)
        for name in NAMES:
            self.cluster.enter(f"/api/v1/namespaces/default/pods/{name}")
        vars(process_module)["Admin"] = NoAdmin
        vars(membership)["ApiServer"] = self.cluster.make_client()
        world.network.services[SERVICE_PORT] = [FIRST_PORT, FIRST_PORT + 1]
        self._listen_to_log()
        self.replicas = [Replica(self, number) for number in range(2)]
        self._write_files()

    def resource_of(self, port: int) -> Broker:
        """Return the resource as the process at *port* gets it."""
        return Broker.model_validate(self._written(port))

    def file_of(self, port: int) -> Path:
        """Return the file with the configuration of the process at *port*."""
        return self._configuration / f"{port}.yaml"

    def configure(self, policies: list[dict[str, Any]]) -> None:
        """Write other policies into the files, which the processes look at now and then."""
        self._spec = {**self._spec, "destinationPolicies": policies}
        self._write_files()

    def _write_files(self) -> None:
        for replica in self.replicas:
            file = self.file_of(replica.port)
            new = file.with_suffix(".new")
            new.write_text(json.dumps(self._written(replica.port)))
            new.replace(file)

    def _written(self, port: int) -> dict[str, Any]:
        spec = {
            **self._spec,
            "listeners": [
                {
                    "name": "openwire",
                    "port": port,
                    "host": "127.0.0.1",
                    "maxInactivityDuration": "5s",
                }
            ],
            "admin": {"port": 0},
        }
        return {
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "Broker",
            "metadata": {"name": "pair"},
            "spec": spec,
        }

    def start(self) -> None:
        """Begin both, and see to them from now on."""
        for replica in self.replicas:
            replica.begin()

    def became(self, replica: Replica, role: str) -> None:
        """Note what a process says it is now."""
        if role == RECOVERING:
            self.reader = replica.process
        elif role == MASTER:
            self.note(f"{replica.name} is master")
            self.on_new_master()

    def ended(self, replica: Replica) -> None:
        """Start a process anew, after a while."""
        hub = self.world.hub
        hub.call_later(int(hub.chance.uniform(*self.restart_seconds) * SECOND), replica.begin)

    def master(self) -> Replica | None:
        """Return the master, None while there is none."""
        found = [each for each in self.replicas if each.is_master]
        return found[0] if len(found) == 1 else None

    def processes(self) -> list[Process]:
        """Return the processes that live."""
        return [each.process for each in self.replicas if each.process and each.process.is_alive]

    def ended_with(self, replica: Replica, error: Exception) -> None:
        """Note why a process could not go on."""
        self.endings.append(f"{replica.name}: {type(error).__name__}: {error}")
        self.note(self.endings[-1])
        if isinstance(error, StoreError):
            self.refusals.append(error)
        else:
            self.world.hub.problem(f"{replica.name} ended by {error!r}", error)

    def note(self, text: str) -> None:
        """Write a line of the world's log."""
        self.log.append(f"{self.world.hub.now / SECOND:9.4f} {text}")

    def _listen_to_log(self) -> None:
        pair = self

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                process = pair.world.hub.process()
                name = process.name if process is not None else "-"
                pair.note(f"{name} {record.levelname} {record.getMessage()}")
                if isinstance(record.args, tuple):
                    pair.losses.extend(record.args)
                if record.exc_info and record.exc_info[1] is not None:
                    pair.world.hub.problem(
                        f"{name} logged {record.exc_info[1]!r}", record.exc_info[1]
                    )

        root = logging.getLogger()
        root.handlers = [Handler()]
        root.setLevel(logging.INFO)
