"""A network of brokers: whole processes, a directory each, which dial each other by bridges."""

import json
import logging
from pathlib import Path
from typing import Any

from simulation.hub import SECOND, Process
from simulation.install import World
from simulation.pair import FIRST_PORT, NoAdmin, Replica

import lockkeeper.server.process as process_module
from lockkeeper.broker.core import Broker
from lockkeeper.store.base import StoreError
from lockkeeper_api import Broker as BrokerResource

NAMES = "abcde"
SHAPES = ("chain", "ring", "star", "mesh")
QUICK = "initialReconnectDelay=100&maxReconnectDelay=1000&minConnectTime=200"
SILENCE_MS = 3_000


def links_of(shape: str, count: int) -> list[tuple[int, int]]:
    """Return which brokers are next to each other, by their numbers."""
    chain = [(number, number + 1) for number in range(count - 1)]
    if shape == "ring" and count > 2:
        return [*chain, (count - 1, 0)]
    if shape == "star":
        return [(0, number) for number in range(1, count)]
    if shape == "mesh":
        return [(one, other) for one in range(count) for other in range(one + 1, count)]
    return chain


class Member:
    """One broker of the network: what `Replica` knows of a pair, for a broker without a standby."""

    has_lease = False
    accepts_loss = False

    def __init__(self, network: "BrokerNetwork", number: int, spec: dict[str, Any]) -> None:
        self.world = network.world
        self.name = NAMES[number]
        self.port = FIRST_PORT + number
        self.directory = network.root / "disk" / self.name
        self.wall_offsets = [0]
        self.is_running = True
        self.starts = 0
        self._network = network
        self._spec = spec
        self._file = network.root / f"{self.name}.yaml"
        self._file.write_text(json.dumps(self._written()))
        # Its directory is its own: it is the first of one replica.
        self.replica = Replica(self, 0)  # type: ignore[arg-type]
        self.replica.name, self.replica.port = self.name, self.port

    def _written(self) -> dict[str, Any]:
        listener = {"name": "openwire", "port": self.port, "host": "127.0.0.1"}
        return {
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "Broker",
            "metadata": {"name": self.name},
            "spec": {
                "listeners": [{**listener, "maxInactivityDuration": "5s"}],
                "admin": {"port": 0},
                **self._spec,
            },
        }

    @property
    def broker(self) -> Broker | None:
        """The core of the process that serves, None while there is none."""
        process = self.replica.broker
        if not self.replica.is_master or process is None or process._engine is None:
            return None
        return process._engine.broker

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def process(self) -> Process | None:
        return self.replica.process

    # As a pair, to its replica

    def resource_of(self, port: int) -> BrokerResource:
        return BrokerResource.model_validate(self._written())

    def file_of(self, port: int) -> Path:
        return self._file

    def became(self, replica: Replica, role: str) -> None:
        self.note(f"{self.name} is {role}")

    def ended(self, replica: Replica) -> None:
        """Start a process anew, after a while."""
        hub = self.world.hub
        self.starts += 1
        hub.call_later(int(hub.chance.uniform(0.2, 2) * SECOND), replica.begin)

    def ended_with(self, replica: Replica, error: Exception) -> None:
        self.note(f"{self.name} ended by {error!r}")
        if not isinstance(error, StoreError):
            self.world.hub.problem(f"{self.name} ended by {error!r}", error)

    def note(self, text: str) -> None:
        self._network.note(text)


class BrokerNetwork:
    """The members and who dials whom."""

    def __init__(self, world: World, root: Path, specs: list[dict[str, Any]]) -> None:
        self.world = world
        self.root = root
        self.log: list[str] = []
        vars(process_module)["Admin"] = NoAdmin
        self._listen_to_log()
        self.members = [Member(self, number, spec) for number, spec in enumerate(specs)]

    def start(self) -> None:
        for member in self.members:
            member.replica.begin()

    def brokers(self) -> list[Broker]:
        """Return the cores of all that serve."""
        return [found for member in self.members if (found := member.broker) is not None]

    def is_whole(self) -> bool:
        """Tell whether all serve, and every bridge has its other broker."""
        if len(self.brokers()) < len(self.members):
            return False
        for member in self.members:
            process = member.replica.broker
            assert process is not None
            networks = process._networks
            if networks is None:
                return False
            if any(record.is_initiator and not _is_up(record) for record in networks.records):
                return False
        return True

    def note(self, text: str) -> None:
        """Write a line of the world's log."""
        self.log.append(f"{self.world.hub.now / SECOND:9.4f} {text}")

    def _listen_to_log(self) -> None:
        network = self

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                process = network.world.hub.process()
                name = process.name if process is not None else "-"
                network.note(f"{name} {record.levelname} {record.getMessage()}")
                if record.exc_info and record.exc_info[1] is not None:
                    error = record.exc_info[1]
                    network.world.hub.problem(f"{name} logged {error!r}", error)

        root = logging.getLogger()
        root.handlers = [Handler()]
        root.setLevel(logging.INFO)


def _is_up(record: Any) -> bool:
    return record.bridge is not None and record.bridge.peer is not None
