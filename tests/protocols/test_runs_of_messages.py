"""Messages that come in one piece: done as a run, and as if each had come alone."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from largest_frames import NAME
from served import NOW, SETTINGS, Served

from lockkeeper.broker.interceptors.statistics_queries import BROKER
from lockkeeper.broker.interceptors.timestamps import TimestampSettings
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.schedule import DELAY
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import TransactionOperation
from lockkeeper.message.primitives import Long, encode_map
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import Receipt, State

PRODUCER = ProducerId(NAME, 1, 1)
DESTINATIONS = ("Q0", "Q1", BROKER, JOBS.name)
SCHEDULING = replace(
    SETTINGS, statistics_queries=True, scheduler=SchedulerSettings(enabled=True, time_zone="UTC")
)
STAMPING = replace(SETTINGS, timestamps=TimestampSettings(zero_expiration_override=9_000))
TRANSACTIONS = [LocalTransactionId(NAME, number) for number in (1, 2)]


class Sent(NamedTuple):
    """A message as its producer makes it; *transaction* 0 is none, 3 one that never began."""

    destination: int = 0
    transaction: int = 0
    size: int = 10
    persistent: bool = True
    wants_response: bool = False
    expiration: int = 0
    correlation: str | None = None
    delay: int = 0

    def frame(self, number: int) -> bytes:
        known = [None, *TRANSACTIONS, LocalTransactionId(NAME, 3)]
        properties = encode_map({DELAY: Long(self.delay)}) if self.delay else None
        message = openwire.ActiveMQBytesMessage(
            command_id=number,
            response_required=self.wants_response,
            producer_id=PRODUCER,
            destination=queue(DESTINATIONS[self.destination]),
            transaction_id=known[self.transaction],
            message_id=MessageId(PRODUCER, number),
            persistent=self.persistent,
            expiration=self.expiration,
            timestamp=NOW - 100,
            correlation_id=self.correlation,
            marshalled_properties=properties,
            content=bytes(self.size),
        )
        return framed(openwire.encode(message))


RARELY = st.sampled_from([False, False, False, True])
SENT = st.builds(
    Sent,
    destination=st.sampled_from([0, 0, 0, 1, 2, 3]),
    transaction=st.sampled_from([0, 0, 0, 1, 1, 2, 3]),
    size=st.sampled_from([0, 10, 10, 10, 300]),
    persistent=st.booleans(),
    wants_response=RARELY,
    expiration=st.sampled_from([0, 0, 0, NOW - 1, NOW + 5]),
    correlation=st.sampled_from([None, None, None, "c"]),
    delay=st.sampled_from([0, 0, 0, 0, 5]),
)
ALIKE = st.builds(lambda sent, count: [sent] * count, SENT, st.integers(1, 5))
"""So that there are runs at all."""


class Life(NamedTuple):
    """What came of a conversation."""

    answers: list[bytes]
    waiting: dict[str, list[tuple[bytes, bool, int, State]]]
    memory: int
    partial: int


def ended(frames: list[bytes], settings: BrokerSettings, together: bool) -> Life:
    """Return what comes of *frames* that come together, or one after the other."""
    served = Served(settings=settings).introduced()
    for identifier in TRANSACTIONS:
        begin = openwire.TransactionInfo(transaction_id=identifier, type=TransactionOperation.BEGIN)
        served.session.receive_data(framed(openwire.encode(begin)))
    for frame in [b"".join(frames)] if together else frames:
        served.session.receive_data(frame)
    for identifier in TRANSACTIONS:
        commit = openwire.TransactionInfo(
            transaction_id=identifier, type=TransactionOperation.COMMIT_ONE_PHASE
        )
        served.session.receive_data(framed(openwire.encode(commit)))
    broker = served.broker
    broker.settle(broker.store.flush())
    broker.tick(NOW)
    answers = [bytes(piece) for piece in served.session.data_to_send()]
    waiting = {
        str(region.destination): [
            (each.loaded.key, each.loaded.persistent, each.loaded.expiration, each.state)
            for each in region.waiting()
        ]
        for region in broker.registry
        if isinstance(region, Queue)
    }
    return Life(answers, waiting, broker.memory.used, broker.memory.partial)


@pytest.mark.parametrize(
    "settings", [SETTINGS, SCHEDULING, STAMPING], ids=["plain", "scheduling", "stamping"]
)
@given(runs=st.lists(st.one_of(ALIKE, st.lists(SENT, max_size=2)), max_size=6))
def test_a_run_does_what_its_messages_do_one_by_one(
    settings: BrokerSettings, runs: list[list[Sent]]
) -> None:
    sent = [each for run in runs for each in run]
    frames = [each.frame(number) for number, each in enumerate(sent)]
    assert ended(frames, settings, together=True) == ended(frames, settings, together=False)


def test_interceptors_that_let_messages_pass_leave_them_a_run() -> None:
    served = Served(settings=SCHEDULING).introduced()
    runs: list[int] = []
    region = served.broker.route(queue("Q0"))
    accept_run = region.accept_run

    def counted(messages: list[Message], receipts: list[Receipt | None]) -> None:
        runs.append(len(messages))
        accept_run(messages, receipts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(region), "accept_run", lambda _, *run: counted(*run))
        for numbers in ([0], range(1, 8)):
            frames = [Sent().frame(number) for number in numbers]
            served.session.receive_data(b"".join(frames))
    assert runs == [7]


def test_a_frame_that_is_too_long_is_refused_in_a_run_too() -> None:
    served = Served()
    settings = ListenerSettings(frame_bytes_max=400)
    served.session = OpenWireSession(served.broker, settings, "tcp://10.0.0.1:1")
    served.introduced()
    frames = [Sent(size=size).frame(number) for number, size in enumerate([9, 9, 9, 500, 9])]
    served.session.receive_data(b"".join(frames))
    assert served.session.closing
    told = f"a frame of {len(frames[3]) - 4} bytes; this listener takes 1 to 400 (frameBytesMax)"
    assert served.session.failure == told
    assert served.broker.registry.ensure_queue(served.broker.context, queue("Q0")).depth() == 3
