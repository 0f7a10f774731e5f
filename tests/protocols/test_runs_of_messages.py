"""Messages that come in one piece: done as a run, and as if each had come alone."""

import sys
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from largest_frames import NAME
from served import NOW, Served

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.openwire import TransactionOperation
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import State

PRODUCER = ProducerId(NAME, 1, 1)
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

    def frame(self, number: int) -> bytes:
        known = [None, *TRANSACTIONS, LocalTransactionId(NAME, 3)]
        message = openwire.ActiveMQBytesMessage(
            command_id=number,
            response_required=self.wants_response,
            producer_id=PRODUCER,
            destination=queue(f"Q{self.destination}"),
            transaction_id=known[self.transaction],
            message_id=MessageId(PRODUCER, number),
            persistent=self.persistent,
            expiration=self.expiration,
            correlation_id=self.correlation,
            content=bytes(self.size),
        )
        return framed(openwire.encode(message))


RARELY = st.sampled_from([False, False, False, True])
SENT = st.builds(
    Sent,
    destination=st.sampled_from([0, 0, 0, 1]),
    transaction=st.sampled_from([0, 0, 0, 1, 1, 2, 3]),
    size=st.sampled_from([0, 10, 10, 10, 300]),
    persistent=st.booleans(),
    wants_response=RARELY,
    expiration=st.sampled_from([0, 0, 0, NOW - 1, NOW + 5]),
    correlation=st.sampled_from([None, None, None, "c"]),
)
ALIKE = st.builds(lambda sent, count: [sent] * count, SENT, st.integers(1, 5))
"""So that there are runs at all."""


class Life(NamedTuple):
    """What came of a conversation."""

    answers: list[bytes]
    waiting: dict[str, list[tuple[bytes, bool, State]]]
    memory: int
    partial: int


def ended(frames: list[bytes], together: bool) -> Life:
    """Return what comes of *frames* that come together, or one after the other."""
    served = Served().introduced()
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
            (each.loaded.key, each.loaded.persistent, each.state) for each in region.waiting()
        ]
        for region in broker.registry
    }
    return Life(answers, waiting, broker.memory.used, broker.memory.partial)


@given(st.lists(st.one_of(ALIKE, st.lists(SENT, max_size=2)), max_size=6))
def test_a_run_does_what_its_messages_do_one_by_one(runs: list[list[Sent]]) -> None:
    sent = [each for run in runs for each in run]
    frames = [each.frame(number) for number, each in enumerate(sent)]
    assert ended(frames, together=True) == ended(frames, together=False)


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
