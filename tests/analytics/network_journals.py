"""Journals of brokers that are joined by bridges: real cores, stores and recorders, no sockets."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "network"))

from journal_maker import ORDERS, JournalMaker
from linked_brokers import Client, Link, Node

from lockkeeper.message.destination import queue
from lockkeeper.message.openwire import BrokerId
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.server.recorder import FlightRecorder
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper_api.broker import Recorder

ROUNDS_MAX = 200
FAR: dict[str, Any] = {"duplex": True, "message_ttl": 4, "consumer_ttl": 4}
STATISTICS_MS = 10_000
ALL = ("north", "south", "west", "east")


class RecordedNode(Node):
    """A broker whose journal has a flight recorder's lines; *is_recorded* turns them off."""

    def __init__(self, directory: Path, is_recorded: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.journal = KahaDBStore(directory)
        super().__init__(directory.name, self.journal)
        self.directory = directory
        self.recorder = FlightRecorder(self.broker, self.store, Recorder(enabled=is_recorded))
        self._tell("start", brokerId=self.broker.broker_id, epoch=1)

    def turn(self) -> None:
        """Write what waits before anybody acknowledges it, with what the recorder has to say."""
        self.broker.tick(self.now)
        self.broker.take_dirty()
        commit = self.journal._commit
        if hasattr(self, "recorder"):
            self.recorder.write_due_statistics(self.now)
            if commit.items:
                self.recorder.before_write(self.now)
        while commit.items:
            self.broker.settle(commit.begin())
            if commit.is_writing:
                self.broker.settle(commit.finish())

    def stop(self) -> None:
        """Stop as a process does that was told to."""
        self.recorder.write_statistics(self.now)
        self._tell("stop")
        self.store.close()

    def _tell(self, event: str, **details: object) -> None:
        self.recorder.event(event, self.now, replica=self.broker.name, **details)


class RecordedNetwork:
    """Brokers with a directory each below *root*, joined by links."""

    def __init__(self, root: Path, *names: str, unrecorded: tuple[str, ...] = ()) -> None:
        self.nodes = {name: RecordedNode(root / name, name not in unrecorded) for name in names}
        self.links: list[Link] = []

    def link(self, near: str, far: str, **settings: Any) -> Link:
        """Have one broker dial another, by a bridge with a name of its own."""
        named = BridgeSettings(name=f"to-{far}", **settings)
        made = Link(self.nodes[near], self.nodes[far], named)
        self.links.append(made)
        return made

    def client(self, name: str) -> Client:
        """Return a new client of a broker."""
        return self.nodes[name].client()

    def settle(self, milliseconds: int = 0) -> None:
        """Let time pass, and have everything forwarded that can be."""
        for node in self.nodes.values():
            node.later(milliseconds)
        for _ in range(ROUNDS_MAX):
            if not sum(link.step() for link in self.links):
                return
        raise AssertionError("the brokers never stop talking")

    def stop(self) -> None:
        """Stop all brokers."""
        for node in self.nodes.values():
            node.stop()


def grown(root: Path, unrecorded: tuple[str, ...] = ()) -> list[Path]:
    """Write the journals of a hub, `south`, and three brokers around it; returns the directories.

    Of `Q` five messages go from north to west, where two wait and nobody is any more. Of `P` five
    go from north to east, where they wait for a consumer that is there. The first of those that
    are taken, that wait, and that wait there have the correlation id `followed`.
    """
    made = RecordedNetwork(root, *ALL, unrecorded=unrecorded)
    made.link("north", "south", **FAR)
    made.link("south", "west", **FAR)
    made.link("south", "east", **FAR)
    sender, west, east = (made.client(name) for name in ("north", "west", "east"))
    first = west.consume("queue://Q")
    made.settle()
    send_several(sender, "queue://Q", 3)
    made.settle(100)
    west.take()
    made.settle(100)
    send_several(sender, "queue://Q", 2)
    made.settle(100)
    west.close(first)
    send_several(sender, "queue://P", 5)
    east.consume("queue://P")
    made.settle(STATISTICS_MS)
    made.settle(STATISTICS_MS)
    made.stop()
    return [root / name for name in ALL]


def send_several(sender: Client, place: str, count: int) -> None:
    """Send so many messages, the first of them to be followed."""
    for number in range(count):
        fields = {} if number else {"correlation_id": "followed"}
        sender.send(place, str(number), **fields)


def dead_letter(directory: Path) -> Path:
    """Write the journal of a broker where a message died that had come over a bridge."""
    path = (BrokerId("ID:a"),)
    made = JournalMaker(directory)
    made.line("event", 0, event="start", broker="b", brokerId="ID:b", epoch=1)
    made.add(1, 10, broker_path=path).flush().clock(10)
    died = {"original_destination": ORDERS, "properties": {"dlqDeliveryFailureCause": "no stock"}}
    made.add(1, 10, queue("DLQ"), broker_path=path, **died)
    made.remove(1).flush()
    return directory
