"""Target: whole connections, with a real core that has every feature switched on."""

import select
import struct
import zlib
from collections.abc import Sequence
from random import Random

from fuzzer import Target, WrongError
from mutations import mutated
from recordings import conversations

from lockkeeper.broker.context import MESSAGE_BYTES
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.purging import purge
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.routing.mirrors import MirroredQueues
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.layout import MESSAGE_TYPES
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import Receipt, Reference, Store
from lockkeeper.store.memory import MemoryStore

START = 1_700_000_000_000
LATER_MS = (1, 1_100, 70_000, 86_400_000)
TICKS_MAX = 200
SETTINGS = ListenerSettings()
BYSTANDER = "ID:bystander"
LINE, NOWHERE = queue("BYSTANDER"), queue("NOWHERE")
WRITE_SECONDS_MAX = 20


def targets() -> list[Target]:
    """Return all of this theme."""
    return [Target("sessions", made, run, (), 0.8, seconds=3)]


def made(chance: Random) -> bytes:
    """Return a recorded conversation in which frames were changed, left out or brought in."""
    said = conversations("c2s")
    frames = list(chance.choice(said))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(frames)) if frames else 0
        kind = chance.random()
        if not frames or kind < 0.1:
            frames.insert(at, chance.choice(chance.choice(said)))
        elif kind < 0.15:
            del frames[at]
        elif kind < 0.2:
            frames.insert(at, frames[chance.randrange(len(frames))])
        elif kind < 0.3:
            frames[at] = _as_told(chance, frames[at])
        else:
            changed = mutated(chance, [frames[at][4:]], changes=2)
            # Mostly with the right size, or nothing that comes after would be understood.
            sized = framed(changed) if chance.random() < 0.95 else frames[at][:4] + changed
            frames[at] = sized
    return b"".join(frames)


PROPERTIES: tuple[dict[str, Value], ...] = (
    {"AMQ_SCHEDULED_DELAY": 1000}, {"AMQ_SCHEDULED_CRON": "* * * * *"}, {"a": [1, {"b": None}]},
    {"AMQ_SCHEDULED_PERIOD": 1, "AMQ_SCHEDULED_REPEAT": 3, "AMQ_SCHEDULED_DELAY": 1},
    {"AMQ_SCHEDULER_ACTION": "BROWSE"}, {"AMQ_SCHEDULER_ACTION": "REMOVEALL"},
)  # fmt: skip
NAMES = (
    "VirtualTopic.A", "Consumer.A.VirtualTopic.A", "GOLDEN.Q,topic://GOLDEN.T", "COMPOSITE",
    "ActiveMQ.DLQ", "ActiveMQ.Scheduler.Jobs", "ActiveMQ.Advisory.Connection", "A.*", ">", ",",
    "ActiveMQ.Scheduler.Management", "ActiveMQ.Statistics.Broker", "x" * 60000, "",
)  # fmt: skip


def _as_told(chance: Random, frame: bytes) -> bytes:
    """Change fields of a message, so that the core does more with it than keep it."""
    if len(frame) < 5 or frame[4] not in MESSAGE_TYPES:
        return frame
    try:
        fields, _ = openwire.decode(frame, 4)
        assert isinstance(fields, openwire.Message)
        fields.marshalled_properties = encode_map(chance.choice(PROPERTIES))
        fields.expiration = chance.choice((0, 1, START + 5, -1, (1 << 63) - 1))
        fields.group_id = chance.choice((None, "g", ""))
        fields.redelivery_counter = chance.choice((0, 7, -1))
        fields.priority = chance.choice((0, 4, 9, 127, -128))
        if fields.destination is not None and chance.random() < 0.7:
            kind = type(fields.destination)
            fields.destination = kind(fields.destination.kind, chance.choice(NAMES))
        if chance.random() < 0.2:
            fields.marshalled_properties = chance.randbytes(8)
        return framed(openwire.encode(fields))
    except ValueError:
        return frame


class World:
    """A core with a client who was there before, and must not notice anything."""

    def __init__(self, store: Store | None = None) -> None:
        self.now = START
        policy = DestinationPolicy(redelivery=RedeliveryPolicy(maximum_redeliveries=2))
        settings = BrokerSettings(
            scheduler=SchedulerSettings(enabled=True),
            composite_destinations=(
                CompositeDestination("COMPOSITE", "Queue", (ForwardTo(queue="X"),)),
            ),
            mirrored_queues=MirroredQueues(),
            statistics_queries=True,
            populate_jmsx_user_id=True,
        )
        policies = PolicyMap([PolicyEntry(">", None, policy)])
        self.store: Store = store or MemoryStore()
        self.broker = Broker(self.store, "fuzz", "ID:fuzz-1", policies, settings, START)
        self.broker.recover()
        self._served = 0
        self.bystander = self.connect("tcp://bystander")
        self._introduce()

    def connect(self, address: str) -> OpenWireSession:
        """Open a connection."""
        session = OpenWireSession(self.broker, SETTINGS, address)
        session.start()
        return session

    def _introduce(self) -> None:
        told = (
            offer(SETTINGS),
            openwire.ConnectionInfo(
                connection_id=openwire.ConnectionId(BYSTANDER), client_id=BYSTANDER
            ),
            openwire.SessionInfo(session_id=openwire.SessionId(BYSTANDER, 1)),
            openwire.ConsumerInfo(
                consumer_id=openwire.ConsumerId(BYSTANDER, 1, 1),
                destination=LINE, prefetch_size=1000,
            ),
        )  # fmt: skip
        self.bystander.receive_data(b"".join(framed(openwire.encode(each)) for each in told))
        self.turn()
        self.bystander.data_to_send()

    def turn(self, later: int = 0) -> None:
        """Have turns until there is nothing to do."""
        self.now += later
        for _ in range(TICKS_MAX):
            self.broker.tick(self.now, self.now)
            receipts = self._durable()
            self.broker.settle(receipts)
            if not receipts and not self.broker.context.postponed:
                return
        raise WrongError(f"the core is still busy after {TICKS_MAX} turns")

    def _durable(self) -> list[Receipt]:
        """Make everything durable; return what waited for that."""
        last = _Nobody()
        self.store.remove(NOWHERE, Reference(None, 0), last)
        receipts = [*self.store.flush()]
        while last not in receipts:
            descriptor = self.store.fileno()
            assert descriptor is not None
            readable, _, _ = select.select([descriptor], [], [], WRITE_SECONDS_MAX)
            if not readable:
                raise WrongError("the store did not finish its write in time")
            receipts += self.store.completed()
        receipts.remove(last)
        return receipts

    def serve(self) -> None:
        """Send the one who was there before a message of its own."""
        self._served += 1
        producer = ProducerId(BYSTANDER, 1, 1)
        message = openwire.ActiveMQTextMessage(
            producer_id=producer,
            destination=LINE,
            message_id=MessageId(producer, self._served),
            persistent=True,
            content=b"\0\0\0\1x",
        )
        self.bystander.data_to_send()
        self.bystander.receive_data(framed(openwire.encode(message)))
        self.turn()
        said = b"".join(self.bystander.data_to_send())
        got = [each for each in _structures(said) if isinstance(each, openwire.MessageDispatch)]
        if len(got) != 1 or self.bystander.closing:
            raise WrongError(f"the other client got {len(got)} messages instead of 1")
        came = got[0].message
        assert came is not None
        ack = openwire.MessageAck(
            destination=LINE,
            consumer_id=openwire.ConsumerId(BYSTANDER, 1, 1),
            ack_type=openwire.AckType.STANDARD,
            first_message_id=came.message_id,
            last_message_id=came.message_id,
            message_count=1,
        )
        self.bystander.receive_data(framed(openwire.encode(ack)))
        self.turn()

    def empty(self) -> None:
        """Take away all that is kept; then no memory is counted but that of what still waits.

        Scheduled messages do: those cannot be purged.
        """
        broker = self.broker
        for identifier in broker.transactions.in_doubt():
            broker.transactions.force(identifier, False, _Nobody())
        self.turn()
        for region in list(broker.registry):
            for _ in purge(broker, region.destination, _Nobody()):
                self.turn()
        self.turn()
        queues = [region for region in broker.registry if isinstance(region, Queue)]
        bodies = [one.message for each in queues for one in each.waiting()]
        held = sum(MESSAGE_BYTES + len(each.body) for each in bodies if each is not None)
        memory = broker.memory
        if (memory.used, memory.partial) != (held, 0):
            told = f"{memory.used} bytes in memory, {memory.partial} of frames"
            raise WrongError(f"{told}, where messages have {held}")


class _Nobody:
    def settle(self) -> None:
        """Tell nobody."""


def _structures(said: bytes) -> Sequence[openwire.Structure]:
    found, position = [], 0
    while position < len(said):
        (size,) = struct.unpack_from(">I", said, position)
        found.append(openwire.decode(said, position + 4, end=position + 4 + size)[0])
        position += 4 + size
    return found


def run(data: bytes) -> None:
    """Play a conversation; nothing but its connection may end, and nothing may be left over."""
    chance = Random(zlib.crc32(data))
    world = World()
    session = world.connect("tcp://stranger")
    position = 0
    while position < len(data) and not session.closing:
        length = chance.choice((1, 3, 60, 1000, 1 << 20))
        session.receive_data(data[position : position + length])
        position += length
        if chance.random() < 0.3 or session.closing:
            world.turn(chance.choice((0, 0, *LATER_MS[:2])))
            _structures_to(session)
    world.turn()
    world.serve()
    session.connection_lost()
    for later in LATER_MS:
        world.turn(later)
    world.serve()
    world.empty()
    _structures_to(session)


def _structures_to(session: OpenWireSession) -> None:
    """Take what is sent to a client, as the peer would."""
    b"".join(session.data_to_send())
