"""Bytes that wait for their turn: the same is done, in the same order, in whatever pieces."""

import sys
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from largest_frames import NAME
from served import Served

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.protocols.openwire.frames import framed

SIZES = st.lists(st.integers(0, 300), min_size=1, max_size=12)


def message(number: int, size: int) -> bytes:
    producer = ProducerId(NAME, 1, 1)
    return framed(
        openwire.encode(
            openwire.ActiveMQBytesMessage(
                command_id=number,
                response_required=True,
                producer_id=producer,
                destination=queue(f"Q{number % 3}"),
                message_id=MessageId(producer, number),
                content=bytes(size),
            )
        )
    )


def answers(served: Served) -> list[int]:
    """Return which commands were answered, in order."""
    served.broker.tick(1_700_000_000_000)
    data, at, found = b"".join(served.session.data_to_send()), 0, []
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        command, _ = openwire.codec_for(12, False).decode(data, at + 4, end)
        if isinstance(command, openwire.Response):
            found.append(command.correlation_id)
        at = end
    return found


@given(SIZES, st.lists(st.integers(1, 2_000)), st.integers(1, 1_500), st.booleans())
def test_the_same_is_done_in_whatever_pieces(
    sizes: list[int], cuts: list[int], most: int, is_read_on_at_once: bool
) -> None:
    data = b"".join(message(number, size) for number, size in enumerate(sizes))
    served = Served().introduced()
    ends = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    for begin, end in pairwise(ends):
        served.session.receive_data(data[begin:end], most)
        while is_read_on_at_once and served.session.unread:
            served.session.read_on(most)
    while served.session.unread:
        before = served.session.unread
        served.session.read_on(most)
        assert served.session.unread < before
    assert answers(served) == list(range(len(sizes)))
    assert (served.session.partial, served.session.failure) == (0, "")


def test_what_begins_later_waits() -> None:
    first, second, third = (message(number, 100) for number in range(3))
    served = Served().introduced()
    served.session.receive_data(first + second + third, len(first))
    assert (answers(served), served.session.unread) == ([0, 1], len(third))
    served.session.read_on(1)
    assert (answers(served), served.session.unread) == ([2], 0)


def test_of_an_ended_connection_nothing_more_is_done() -> None:
    served = Served().introduced()
    served.session.receive_data(message(0, 1) + message(1, 1) + message(2, 1), 1)
    served.session.closing = True
    served.session.read_on(1)
    assert (answers(served), served.session.unread) == ([0], 0)
